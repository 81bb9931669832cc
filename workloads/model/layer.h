// One layer, norms before the branches: x + dropout(attention(norm(x))), then the same with the MLP
// or the experts; or a mamba layer, x + dropout(mixer(norm(x))) alone. In a hybrid model the two
// take turns, M and *- or *E of Megatron-LM's pattern, where attention and what follows it are
// letters of their own. The layer and each branch are parts that a graph may hold alone
// (module_runner.h), and so are two parts of the experts: moe_router is norm, router and shared
// expert, save with shared_expert_overlap; moe_preprocess the local permutation after it. The
// exchange, the experts and what follows are then eager, and so is a shared expert beside them.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fixtures/device/nvtx.h"
#include "fixtures/tensors/torch.h"
#include "workloads/forward/recompute.h"
#include "workloads/layers/attention.h"
#include "workloads/layers/delayed_gradients.h"
#include "workloads/layers/mamba.h"
#include "workloads/layers/mlp.h"
#include "workloads/layers/moe.h"
#include "workloads/layers/norm.h"

namespace graphproof::workloads {

class Layer {
 public:
  Layer(Parameters& parameters, const ModelConfig& config, const Layout& layout,
        const AttentionTables& tables, const MambaTables& mamba_tables, at::Device device,
        std::int64_t index)
      : index_(index),
        recompute_(config.recompute),
        counter_(static_cast<std::size_t>(layout.place(config, index))),
        name_("layers." + std::to_string(index)),
        first_norm_(parameters, config, layout,
                    name_ + (config.mamba(index) ? ".mamba_norm" : ".attention_norm")),
        attention_delayed_(config.delay_wgrad ? std::make_unique<DelayedGradients>() : nullptr),
        shared_delayed_(config.delay_wgrad && config.shared_expert
                            ? std::make_unique<DelayedGradients>()
                            : nullptr),
        experts_delayed_(config.delay_wgrad ? std::make_unique<DelayedGradients>() : nullptr) {
    const bool shared_with_router = config.shared_expert && !config.shared_expert_overlap;
    if (config.mamba(index)) {
      mamba_.emplace(parameters, config, layout, mamba_tables, name_ + ".mamba");
      parameters_ = parameters.starting_with(name_ + ".");
      return;
    }
    attention_.emplace(parameters, config, layout, tables, name_ + ".attention", index,
                       attention_delayed_.get());
    mlp_norm_.emplace(parameters, config, layout, name_ + ".mlp_norm");
    if (config.experts > 0)
      moe_.emplace(parameters, config, layout, device, name_ + ".mlp", index, shared_delayed_.get(),
                   experts_delayed_.get());
    else
      mlp_.emplace(parameters, config, layout, name_ + ".mlp");
    parameters_ = parameters.starting_with(name_ + ".");
    attention_parameters_ = parameters.starting_with(name_ + ".attention");
    mlp_parameters_ = parameters.starting_with(name_ + ".mlp");
    attention_norm_parameters_ = parameters.starting_with(name_ + ".attention_norm.");
    mlp_norm_parameters_ = parameters.starting_with(name_ + ".mlp_norm.");
    behind_norm_parameters_ = parameters.starting_with(name_ + ".mlp.");
    behind_router_parameters_ = parameters.starting_with(name_ + ".mlp.experts.");
    for (const char* routed : {".mlp_norm", ".mlp.router", ".mlp.shared"})
      for (const at::Tensor& parameter : parameters.starting_with(name_ + routed))
        (shared_with_router || routed != std::string_view(".mlp.shared")
             ? router_parameters_
             : behind_router_parameters_)
            .push_back(parameter);
    if (!config.delay_wgrad) return;
    for (const char* linear : {".attention.qkv.weight", ".attention.projection.weight",
                               ".mlp.shared.up.weight", ".mlp.shared.down.weight"})
      for (const at::Tensor& weight : parameters.starting_with(name_ + linear))
        attend_weights_.push_back(weight);
    for (const at::Tensor& weight : parameters.starting_with(name_ + ".mlp.experts."))
      if (weight.dim() == 3 && weight.size(1) > 1) work_weights_.push_back(weight);
  }

  std::int64_t index() const { return index_; }  // in the whole model
  const std::vector<at::Tensor>& parameters() const { return parameters_; }

  /// x [N/P, H] outside tensor parallel regions (tensor_parallel.h), and so is what is returned, of
  /// the same shape. Adds one to this layer's counter, save when recompute runs it again.
  at::Tensor forward(const at::Tensor& x, const ForwardPass& pass) const {
    const fixtures::NvtxRange range("layer", index_);
    if (pass.gather) pass.gather->wait(parameters_);
    return part(ModuleKind::layer, x, parameters_, pass,
                [this](const at::Tensor& input, const ForwardPass& run) {
                  if (mamba_) return mamba_part(input, run);
                  const at::Tensor attended = attention_part(input, run);
                  return moe_ ? moe_part(attended, run) : mlp_part(attended, run);
                });
  }

  /// What attend() leaves for the pieces behind it, beside tensors with gradients.
  struct Kept {
    at::Tensor slots;
    Lots lots;
  };
  /// Of the tensors between the pieces, the one that travels to the experts and comes back.
  static constexpr std::size_t kDeparting = 1;
  /// forward() in pieces, for layer_pass.h: attention and router, the experts' own work on what
  /// arrived, and what follows when it is back. Parts of the first are modules that a runner may
  /// hold. attend() returns residual [N/P, H], departing rows, weights [N, K] and, if any, the
  /// shared expert's part [N/P, H]; finish() takes the same with the rows that came back.
  std::vector<at::Tensor> attend(const at::Tensor& x, const ForwardPass& pass, Kept& kept) const {
    const fixtures::NvtxRange range("layer", index_);
    if (pass.gather) pass.gather->wait(parameters_);
    const auto routed = routed_part(attention_part(x, pass), pass);
    const auto dispatch = dispatch_part({routed[1], routed[2], routed[3]}, pass);
    kept.slots = dispatch[1];
    std::vector<at::Tensor> left{
        routed[0], moe_->departing(dispatch[0], counts_of(dispatch), kept.lots), dispatch[2]};
    if (routed.size() > 4) left.push_back(routed[4]);
    return left;
  }
  at::Tensor work(const at::Tensor& arrived, const ForwardPass& pass, const Kept& kept) const {
    return moe_->own_work(arrived, kept.lots, pass);
  }
  at::Tensor finish(const std::vector<at::Tensor>& left, const ForwardPass& pass,
                    const Kept& kept) const {
    at::Tensor combined =
        moe_->combine(moe_->returned(left[kDeparting], kept.lots), kept.slots, left[2]);
    if (left.size() > 3) combined = combined + left[3];
    return left[0] + pass.dropout.apply(combined, {index_, DropoutSite::mlp, pass.again});
  }
  /// What the backwards of these two pieces left for later (delayed_gradients.h), and the weights
  /// whose gradients that are.
  void attend_weight_gradients(const ForwardPass& pass) const {
    owed_part(ModuleKind::attn, *attention_delayed_, pass);
    if (shared_delayed_) owed_part(ModuleKind::moe_router, *shared_delayed_, pass);
  }
  void work_weight_gradients(const ForwardPass&) const { experts_delayed_->add(); }
  const std::vector<at::Tensor>& attend_weights() const { return attend_weights_; }
  const std::vector<at::Tensor>& work_weights() const { return work_weights_; }
  /// Of a step that an error ended.
  void forget_delayed() const {
    for (DelayedGradients* delayed : all_delayed())
      if (delayed) delayed->forget();
  }
  /// At the end of a step.
  void require_none_owed() const {
    for (const DelayedGradients* delayed : all_delayed())
      if (delayed) delayed->require_none_owed();
  }

 private:
  std::array<DelayedGradients*, 3> all_delayed() const {
    return {attention_delayed_.get(), shared_delayed_.get(), experts_delayed_.get()};
  }

  void owed_part(ModuleKind kind, DelayedGradients& delayed, const ForwardPass& pass) const {
    const std::function<void()> add = [&delayed] { delayed.add(); };
    if (pass.runner)
      pass.runner->run_weight_gradients({kind, index_, pass.microbatch}, add);
    else
      add();
  }

  at::Tensor mamba_part(const at::Tensor& x, const ForwardPass& pass) const {
    return part(ModuleKind::mamba, x, parameters_, pass,
                [this](const at::Tensor& input, const ForwardPass& run) {
                  if (!run.again) count(run);
                  return input + run.dropout.apply(mamba_->forward(first_norm_.forward(input), run),
                                                   {index_, DropoutSite::mamba, run.again});
                });
  }

  at::Tensor attention_part(const at::Tensor& x, const ForwardPass& pass) const {
    return part(ModuleKind::attn, x, attention_parameters_, pass,
                [this](const at::Tensor& input, const ForwardPass& run) {
                  if (!run.again) count(run);
                  return input +
                         run.dropout.apply(
                             attention_->forward(
                                 normalized(RecomputedPart::attention_norm, input, run), run),
                             {index_, DropoutSite::attention, run.again});
                });
  }

  at::Tensor mlp_part(const at::Tensor& x, const ForwardPass& pass) const {
    return part(ModuleKind::mlp, x, mlp_parameters_, pass,
                [this, pass](const at::Tensor& input, const ForwardPass&) {
                  const at::Tensor fed =
                      twice(RecomputedPart::mlp, normalized(RecomputedPart::mlp_norm, input, pass),
                            behind_norm_parameters_, pass,
                            [this](const at::Tensor& hidden, const ForwardPass& run) {
                              return mlp_->forward(hidden, run);
                            });
                  return input + pass.dropout.apply(fed, {index_, DropoutSite::mlp, pass.again});
                });
  }

  at::Tensor moe_part(const at::Tensor& x, const ForwardPass& pass) const {
    return part(
        ModuleKind::moe, x, mlp_parameters_, pass,
        [this, pass](const at::Tensor& input, const ForwardPass&) {
          if (recompute_.of(RecomputedPart::moe) && !recompute_.behind_router)
            return input + recomputed_experts(input, pass);
          const auto routed = routed_part(input, pass);
          if (pass.beside) {
            const at::Tensor combined =
                dispatched({routed[1], routed[2], routed[3]}, routed[4], pass);
            return routed[0] + pass.dropout.apply(combined, {index_, DropoutSite::mlp, pass.again});
          }
          at::Tensor combined = moe_->gathers()
                                    ? gathered({routed[1], routed[2], routed[3]}, pass)
                                    : dispatched({routed[1], routed[2], routed[3]}, {}, pass);
          if (routed.size() > 4) combined = combined + routed[4];
          return routed[0] + pass.dropout.apply(combined, {index_, DropoutSite::mlp, pass.again});
        });
  }

  /// Returns residual, hidden, probabilities, carried and, if any, the shared expert's part; with
  /// its overlap, what that expert takes, because a graph of router and dispatch may keep hidden to
  /// itself.
  std::vector<at::Tensor> routed_part(const at::Tensor& x, const ForwardPass& pass) const {
    const ModuleCall router{ModuleKind::moe_router, index_, pass.microbatch};
    return run_module(pass, router, {x}, router_parameters_, [this, pass](const auto& inputs) {
      // The residual goes through, as upstream's, so that the gradients of the input meet inside
      // the part: added up in the same order with and without a graph around it.
      const at::Tensor residual = inputs[0].view_as(inputs[0]);
      const at::Tensor hidden = normalized(RecomputedPart::mlp_norm, inputs[0], pass);
      const Routing routing = moe_->route(hidden, pass);
      std::vector<at::Tensor> outputs{residual, hidden, routing.probabilities, routing.carried};
      if (pass.beside)
        outputs.push_back(hidden.view_as(hidden));
      else if (const at::Tensor shared = moe_->shared(hidden, pass); shared.defined())
        outputs.push_back(shared);
      return outputs;
    });
  }

  /// routed: hidden, probabilities, carried. Returns tokens, slots, weights and, dropless, counts.
  std::vector<at::Tensor> dispatch_part(const std::vector<at::Tensor>& routed,
                                        const ForwardPass& pass) const {
    const ModuleCall preprocess{ModuleKind::moe_preprocess, index_, pass.microbatch};
    return run_module(pass, preprocess, routed, no_parameters_, [this, pass](const auto& inputs) {
      const Dispatch made = moe_->preprocess(inputs[0], {inputs[1], inputs[2]}, pass);
      std::vector<at::Tensor> outputs{made.tokens, made.slots, made.weights};
      if (made.counts.defined()) outputs.push_back(made.counts);
      return outputs;
    });
  }
  static at::Tensor counts_of(const std::vector<at::Tensor>& dispatch) {
    return dispatch.size() > 3 ? dispatch[3] : at::Tensor();
  }

  /// routed: hidden, probabilities, carried. Returns [N, H]; with the shared expert's part if it
  /// runs beside this, on `beside` [N, H].
  at::Tensor dispatched(const std::vector<at::Tensor>& routed, const at::Tensor& beside,
                        const ForwardPass& pass) const {
    auto dispatch = dispatch_part(routed, pass);
    const bool with_counts = dispatch.size() > 3, with_beside = beside.defined();
    if (with_beside) dispatch.push_back(beside);
    return twice(RecomputedPart::moe, dispatch, behind_router_parameters_, pass,
                 [this, with_counts, with_beside](const std::vector<at::Tensor>& given,
                                                  const ForwardPass& run) {
                   const auto carried = [&] {
                     return moe_->combine(
                         moe_->experts(given[0], with_counts ? given[3] : at::Tensor(), run),
                         given[1], given[2]);
                   };
                   return with_beside ? beside_shared(given.back(), run, carried) : carried();
                 });
  }
  /// In its place where tokens are gathered.
  at::Tensor gathered(const std::vector<at::Tensor>& routed, const ForwardPass& pass) const {
    return twice(RecomputedPart::moe, routed, behind_router_parameters_, pass,
                 [this](const std::vector<at::Tensor>& given, const ForwardPass& run) {
                   return moe_->gathered_experts(given[0], {given[1], given[2]}, run);
                 });
  }

  /// carried() [N, H] and the shared expert's part of `hidden` [N, H], which runs beside it.
  template <class Carried>
  at::Tensor beside_shared(const at::Tensor& hidden, const ForwardPass& pass,
                           const Carried& carried) const {
    auto under_way =
        pass.beside->begin(hidden, [&](const at::Tensor& x) { return moe_->shared(x, pass); });
    const at::Tensor combined = carried();
    return combined + pass.beside->end(std::move(under_way));
  }

  // The whole expert layer behind its norm as one stretch: no part of it may be a graph of its own.
  at::Tensor recomputed_experts(const at::Tensor& input, const ForwardPass& pass) const {
    const at::Tensor combined = twice(
        RecomputedPart::moe, normalized(RecomputedPart::mlp_norm, input, pass),
        behind_norm_parameters_, pass, [this](const at::Tensor& hidden, const ForwardPass& run) {
          const Routing routing = moe_->route(hidden, run);
          const auto carried = [&] {
            if (moe_->gathers()) return moe_->gathered_experts(hidden, routing, run);
            const Dispatch made = moe_->preprocess(hidden, routing, run);
            return moe_->combine(moe_->experts(made.tokens, made.counts, run), made.slots,
                                 made.weights);
          };
          if (run.beside) return beside_shared(hidden, run, carried);
          const at::Tensor shared = moe_->shared(hidden, run);
          const at::Tensor routed = carried();
          return shared.defined() ? routed + shared : routed;
        });
    return pass.dropout.apply(combined, {index_, DropoutSite::mlp, pass.again});
  }

  at::Tensor normalized(RecomputedPart part, const at::Tensor& x, const ForwardPass& pass) const {
    const bool attention = part == RecomputedPart::attention_norm;
    const Norm& norm = attention ? first_norm_ : *mlp_norm_;
    return twice(
        part, x, attention ? attention_norm_parameters_ : mlp_norm_parameters_, pass,
        [&norm](const at::Tensor& input, const ForwardPass&) { return norm.forward(input); });
  }

  /// work(x, pass), which backward runs again where `part` is recomputed.
  template <class Work>
  at::Tensor twice(RecomputedPart part, const at::Tensor& x,
                   const std::vector<at::Tensor>& parameters, const ForwardPass& pass,
                   const Work& work) const {
    return twice(part, std::vector{x}, parameters, pass,
                 [work](const std::vector<at::Tensor>& inputs, const ForwardPass& run) {
                   return work(inputs[0], run);
                 });
  }
  /// The same of several inputs.
  template <class Work>
  at::Tensor twice(RecomputedPart part, const std::vector<at::Tensor>& inputs,
                   const std::vector<at::Tensor>& parameters, const ForwardPass& pass,
                   const Work& work) const {
    if (!recompute_.of(part)) return work(inputs, pass);
    return recompute(
        part, pass.faults,
        [this, part, pass, work](const std::vector<at::Tensor>& kept, bool again) {
          ForwardPass run = pass;
          run.again = run.again || again;
          const at::Tensor y = work(kept, run);
          pass.recomputes.note(part, index_, y, again);
          return y;
        },
        inputs, parameters);
  }

  /// body(x, pass). The documents of packed sequences are an input of a part in which tokens meet:
  /// a graph of the part is replayed with those of other microbatches.
  template <class Body>
  at::Tensor part(ModuleKind kind, const at::Tensor& x, const std::vector<at::Tensor>& parameters,
                  const ForwardPass& pass, const Body& body) const {
    if (!pass.runner) return body(x, pass);
    std::vector<at::Tensor> inputs{x};
    const bool meet =
        kind == ModuleKind::attn || kind == ModuleKind::mamba || kind == ModuleKind::layer;
    if (meet && pass.documents.defined()) inputs.push_back(pass.documents);
    return run_module(pass, {kind, index_, pass.microbatch}, inputs, parameters,
                      [body, pass](const std::vector<at::Tensor>& given) {
                        ForwardPass run = pass;
                        if (given.size() > 1) run.documents = given[1];
                        return std::vector<at::Tensor>{body(given[0], run)};
                      })[0];
  }

  void count(const ForwardPass& pass) const {
    const at::Tensor& counter = pass.counters[counter_];
    if (pass.faults.counts_layer(index_, counter)) counter.add_(1);
  }

  std::int64_t index_;
  RecomputeConfig recompute_;
  std::size_t counter_;  // its place among the layers of this stage
  std::string name_;
  Norm first_norm_;
  std::unique_ptr<DelayedGradients> attention_delayed_, shared_delayed_,
      experts_delayed_;         // null without delay_wgrad
  std::optional<Mamba> mamba_;  // alone, or
  std::optional<Attention> attention_;
  std::optional<Norm> mlp_norm_;
  std::optional<Mlp> mlp_;  // one of these two
  std::optional<Moe> moe_;
  std::vector<at::Tensor> parameters_, attention_parameters_, mlp_parameters_, router_parameters_;
  std::vector<at::Tensor> attention_norm_parameters_, mlp_norm_parameters_, behind_norm_parameters_,
      behind_router_parameters_;  // of recompute
  std::vector<at::Tensor> no_parameters_;
  std::vector<at::Tensor> attend_weights_, work_weights_;  // whose gradients are delayed
};

}  // namespace graphproof::workloads
