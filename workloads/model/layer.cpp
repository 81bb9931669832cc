#include "workloads/model/layer.h"

#include <functional>
#include <string_view>
#include <utility>

#include "fixtures/device/nvtx.h"
#include "workloads/forward/recompute.h"

namespace graphproof::workloads {
namespace {

at::Tensor counts_of(const std::vector<at::Tensor>& dispatch) {
  return dispatch.size() > 3 ? dispatch[3] : at::Tensor();
}

}  // namespace

Layer::Layer(Parameters& parameters, const ModelConfig& config, const Layout& layout,
             const AttentionTables& tables, const MambaTables& mamba_tables, at::Device device,
             Place place)
    : index_(place.index),
      recompute_(config.recompute),
      counter_(place.counter),
      name_(std::move(place.name)),
      first_norm_(parameters, config, layout,
                  name_ + (config.mamba(index_) ? ".mamba_norm" : ".attention_norm")),
      attention_delayed_(config.delay_wgrad ? std::make_unique<DelayedGradients>() : nullptr),
      shared_delayed_(config.delay_wgrad && config.shared_expert
                          ? std::make_unique<DelayedGradients>()
                          : nullptr),
      experts_delayed_(config.delay_wgrad ? std::make_unique<DelayedGradients>() : nullptr) {
  const bool shared_with_router = config.shared_expert && !config.shared_expert_overlap;
  if (config.mamba(index_)) {
    mamba_.emplace(parameters, config, layout, mamba_tables, name_ + ".mamba", index_);
    parameters_ = parameters.starting_with(name_ + ".");
    return;
  }
  attention_.emplace(parameters, config, layout, tables, name_ + ".attention", index_,
                     attention_delayed_.get());
  mlp_norm_.emplace(parameters, config, layout, name_ + ".mlp_norm");
  if (config.experts > 0)
    moe_.emplace(parameters, config, layout, device, name_ + ".mlp", index_, shared_delayed_.get(),
                 experts_delayed_.get());
  else
    mlp_.emplace(parameters, config, layout, name_ + ".mlp");
  parameters_ = parameters.starting_with(name_ + ".");
  attention_parameters_ = parameters.starting_with(name_ + ".attention");
  mlp_parameters_ = parameters.starting_with(name_ + ".mlp");
  attention_norm_parameters_ = parameters.starting_with(name_ + ".attention_norm.");
  mlp_norm_parameters_ = parameters.starting_with(name_ + ".mlp_norm.");
  after_norm_parameters_ = parameters.starting_with(name_ + ".mlp.");
  after_router_parameters_ = parameters.starting_with(name_ + ".mlp.experts.");
  for (const char* routed : {".mlp_norm", ".mlp.router", ".mlp.shared"})
    for (const at::Tensor& parameter : parameters.starting_with(name_ + routed))
      (shared_with_router || routed != std::string_view(".mlp.shared") ? router_parameters_
                                                                       : after_router_parameters_)
          .push_back(parameter);
  if (!config.delay_wgrad) return;
  for (const char* linear :
       {".attention.qkv.weight", ".attention.q_down.weight", ".attention.q_up.weight",
        ".attention.kv_down.weight", ".attention.kv_up.weight", ".attention.projection.weight",
        ".mlp.shared.up.weight", ".mlp.shared.down.weight"})
    for (const at::Tensor& weight : parameters.starting_with(name_ + linear))
      before_experts_weights_.push_back(weight);
  for (const at::Tensor& weight : parameters.starting_with(name_ + ".mlp.experts."))
    if (weight.dim() == 3 && weight.size(1) > 1) expert_weights_.push_back(weight);
}

at::Tensor Layer::forward(const at::Tensor& x, const ForwardPass& pass) const {
  const fixtures::NvtxRange range("layer", index_);
  if (pass.gather) pass.gather->wait(parameters_);
  return run_part(ModuleKind::layer, x, parameters_, pass,
                  [this](const at::Tensor& input, const ForwardPass& run) {
                    if (mamba_) return mamba_part(input, run);
                    const at::Tensor attended = attention_part(input, run);
                    return moe_ ? moe_part(attended, run) : mlp_part(attended, run);
                  });
}

std::vector<at::Tensor> Layer::before_experts(const at::Tensor& x, const ForwardPass& pass,
                                              RoutingState& routing) const {
  const fixtures::NvtxRange range("layer", index_);
  if (pass.gather) pass.gather->wait(parameters_);
  const auto routed = router_part(attention_part(x, pass), pass);
  const auto dispatch = preprocess_part({routed[1], routed[2], routed[3]}, pass);
  routing.slots = dispatch[1];
  std::vector<at::Tensor> tensors{
      routed[0], moe_->pack(dispatch[0], counts_of(dispatch), pass, routing.sizes), dispatch[2]};
  if (routed.size() > 4) tensors.push_back(routed[4]);
  return tensors;
}

at::Tensor Layer::expert_forward(const at::Tensor& arrived, const ForwardPass& pass,
                                 const RoutingState& routing) const {
  return moe_->expert_forward(arrived, routing.sizes, pass);
}

at::Tensor Layer::after_experts(const std::vector<at::Tensor>& tensors, const ForwardPass& pass,
                                const RoutingState& routing) const {
  at::Tensor combined =
      moe_->combine(moe_->unpack(tensors[kPacked], routing.sizes), routing.slots, tensors[2]);
  if (tensors.size() > 3) combined = combined + tensors[3];
  return tensors[0] + pass.dropout.apply(combined, {index_, DropoutSite::mlp, pass.again});
}

void Layer::before_experts_weight_gradients(const ForwardPass& pass) const {
  add_delayed(ModuleKind::attn, *attention_delayed_, pass);
  if (shared_delayed_) add_delayed(ModuleKind::moe_router, *shared_delayed_, pass);
}

void Layer::discard_delayed() const {
  for (DelayedGradients* delayed : all_delayed())
    if (delayed) delayed->discard();
}

void Layer::require_none_pending() const {
  for (const DelayedGradients* delayed : all_delayed())
    if (delayed) delayed->require_none_pending();
}

void Layer::add_delayed(ModuleKind kind, DelayedGradients& delayed, const ForwardPass& pass) const {
  const std::function<void()> add = [&delayed] { delayed.add(); };
  if (pass.runner)
    pass.runner->run_weight_gradients({kind, index_, pass.microbatch}, add);
  else
    add();
}

at::Tensor Layer::mamba_part(const at::Tensor& x, const ForwardPass& pass) const {
  return run_part(ModuleKind::mamba, x, parameters_, pass,
                  [this](const at::Tensor& input, const ForwardPass& run) {
                    if (!run.again) count(run);
                    return input +
                           run.dropout.apply(mamba_->forward(first_norm_.forward(input), run),
                                             {index_, DropoutSite::mamba, run.again});
                  });
}

at::Tensor Layer::attention_part(const at::Tensor& x, const ForwardPass& pass) const {
  return run_part(
      ModuleKind::attn, x, attention_parameters_, pass,
      [this](const at::Tensor& input, const ForwardPass& run) {
        if (!run.again) count(run);
        return input +
               run.dropout.apply(
                   attention_->forward(normalized(RecomputedPart::attention_norm, input, run), run),
                   {index_, DropoutSite::attention, run.again});
      });
}

at::Tensor Layer::mlp_part(const at::Tensor& x, const ForwardPass& pass) const {
  return run_part(
      ModuleKind::mlp, x, mlp_parameters_, pass,
      [this, pass](const at::Tensor& input, const ForwardPass&) {
        const at::Tensor output = with_recompute(
            RecomputedPart::mlp, normalized(RecomputedPart::mlp_norm, input, pass),
            after_norm_parameters_, pass, [this](const at::Tensor& hidden, const ForwardPass& run) {
              return mlp_->forward(hidden, run);
            });
        return input + pass.dropout.apply(output, {index_, DropoutSite::mlp, pass.again});
      });
}

at::Tensor Layer::moe_part(const at::Tensor& x, const ForwardPass& pass) const {
  return run_part(ModuleKind::moe, x, mlp_parameters_, pass,
                  [this, pass](const at::Tensor& input, const ForwardPass&) {
                    if (recompute_.of(RecomputedPart::moe) && !recompute_.after_router)
                      return input + recomputed_experts(input, pass);
                    const auto outputs = router_part(input, pass);
                    const std::vector<at::Tensor> routed{outputs[1], outputs[2], outputs[3]};
                    at::Tensor combined;
                    if (pass.shared_expert_stream) {
                      combined = exchanged_experts(routed, outputs[4], pass);
                    } else {
                      combined = moe_->gathers() ? gathered_experts(routed, pass)
                                                 : exchanged_experts(routed, {}, pass);
                      if (outputs.size() > 4) combined = combined + outputs[4];
                    }
                    return outputs[0] +
                           pass.dropout.apply(combined, {index_, DropoutSite::mlp, pass.again});
                  });
}

/// Norm, router and shared expert. Returns residual, hidden, probabilities and carried
/// assignments, then the result of the shared expert if there is one. If the shared expert is
/// overlapped, the last tensor is its input, because a graph that holds the router and the dispatch
/// may keep `hidden` for itself.
std::vector<at::Tensor> Layer::router_part(const at::Tensor& x, const ForwardPass& pass) const {
  const ModuleCall router{ModuleKind::moe_router, index_, pass.microbatch};
  return run_module(pass, router, {x}, router_parameters_, [this, pass](const auto& inputs) {
    // The residual passes through the part, as in Megatron-LM, so that the gradients of the input
    // are summed inside it, in the same order with and without a graph around the part.
    const at::Tensor residual = inputs[0].view_as(inputs[0]);
    const at::Tensor hidden = normalized(RecomputedPart::mlp_norm, inputs[0], pass);
    const Routing routing = moe_->route(hidden, pass);
    std::vector<at::Tensor> outputs{residual, hidden, routing.probabilities, routing.carried};
    if (pass.shared_expert_stream)
      outputs.push_back(hidden.view_as(hidden));
    else if (const at::Tensor shared = moe_->shared(hidden, pass); shared.defined())
      outputs.push_back(shared);
    return outputs;
  });
}

/// The local permutation. routed: hidden, probabilities, carried. Returns tokens, slots, weights
/// and, if dropless, counts.
std::vector<at::Tensor> Layer::preprocess_part(const std::vector<at::Tensor>& routed,
                                               const ForwardPass& pass) const {
  const ModuleCall preprocess{ModuleKind::moe_preprocess, index_, pass.microbatch};
  return run_module(pass, preprocess, routed, no_parameters_, [this, pass](const auto& inputs) {
    const Dispatch dispatch = moe_->preprocess(inputs[0], {inputs[1], inputs[2]}, pass);
    std::vector<at::Tensor> outputs{dispatch.tokens, dispatch.slots, dispatch.weights};
    if (dispatch.counts.defined()) outputs.push_back(dispatch.counts);
    return outputs;
  });
}

/// The routed experts, whose tokens travel by all-to-all. routed: hidden, probabilities, carried.
/// Returns [N, H]. If `hidden` [N, H] is defined, the result includes the shared expert's, which
/// runs concurrently.
at::Tensor Layer::exchanged_experts(const std::vector<at::Tensor>& routed, const at::Tensor& hidden,
                                    const ForwardPass& pass) const {
  auto dispatch = preprocess_part(routed, pass);
  const bool with_counts = dispatch.size() > 3, with_shared = hidden.defined();
  if (with_shared) dispatch.push_back(hidden);
  return with_recompute(
      RecomputedPart::moe, dispatch, after_router_parameters_, pass,
      [this, with_counts, with_shared](const std::vector<at::Tensor>& given,
                                       const ForwardPass& run) {
        const auto routed_experts = [&] {
          return moe_->combine(moe_->experts(given[0], with_counts ? given[3] : at::Tensor(), run),
                               given[1], given[2]);
        };
        return with_shared ? with_overlapped_shared_expert(given.back(), run, routed_experts)
                           : routed_experts();
      });
}

/// The same with tokens that are gathered (Moe::gathered_experts()).
at::Tensor Layer::gathered_experts(const std::vector<at::Tensor>& routed,
                                   const ForwardPass& pass) const {
  return with_recompute(RecomputedPart::moe, routed, after_router_parameters_, pass,
                        [this](const std::vector<at::Tensor>& given, const ForwardPass& run) {
                          return moe_->gathered_experts(given[0], {given[1], given[2]}, run);
                        });
}

/// routed_experts() [N, H] plus the result of the shared expert for `hidden` [N, H], which runs
/// concurrently on its own stream.
template <class RoutedExperts>
at::Tensor Layer::with_overlapped_shared_expert(const at::Tensor& hidden, const ForwardPass& pass,
                                                const RoutedExperts& routed_experts) const {
  auto shared = pass.shared_expert_stream->begin(
      hidden, [&](const at::Tensor& x) { return moe_->shared(x, pass); });
  const at::Tensor combined = routed_experts();
  return combined + pass.shared_expert_stream->end(std::move(shared));
}

/// The whole expert layer after its norm is recomputed as one part. No piece of it can be a graph
/// of its own then.
at::Tensor Layer::recomputed_experts(const at::Tensor& input, const ForwardPass& pass) const {
  const at::Tensor combined = with_recompute(
      RecomputedPart::moe, normalized(RecomputedPart::mlp_norm, input, pass),
      after_norm_parameters_, pass, [this](const at::Tensor& hidden, const ForwardPass& run) {
        const Routing routing = moe_->route(hidden, run);
        const auto routed_experts = [&] {
          if (moe_->gathers()) return moe_->gathered_experts(hidden, routing, run);
          const Dispatch dispatch = moe_->preprocess(hidden, routing, run);
          return moe_->combine(moe_->experts(dispatch.tokens, dispatch.counts, run), dispatch.slots,
                               dispatch.weights);
        };
        if (run.shared_expert_stream)
          return with_overlapped_shared_expert(hidden, run, routed_experts);
        const at::Tensor shared = moe_->shared(hidden, run);
        const at::Tensor routed = routed_experts();
        return shared.defined() ? routed + shared : routed;
      });
  return pass.dropout.apply(combined, {index_, DropoutSite::mlp, pass.again});
}

at::Tensor Layer::normalized(RecomputedPart part, const at::Tensor& x,
                             const ForwardPass& pass) const {
  const bool attention = part == RecomputedPart::attention_norm;
  const Norm& norm = attention ? first_norm_ : *mlp_norm_;
  return with_recompute(
      part, x, attention ? attention_norm_parameters_ : mlp_norm_parameters_, pass,
      [&norm](const at::Tensor& input, const ForwardPass&) { return norm.forward(input); });
}

/// work(x, pass), which the backward runs again if `part` is recomputed.
template <class Work>
at::Tensor Layer::with_recompute(RecomputedPart part, const at::Tensor& x,
                                 const std::vector<at::Tensor>& parameters, const ForwardPass& pass,
                                 const Work& work) const {
  return with_recompute(part, std::vector{x}, parameters, pass,
                        [work](const std::vector<at::Tensor>& inputs, const ForwardPass& run) {
                          return work(inputs[0], run);
                        });
}

template <class Work>
at::Tensor Layer::with_recompute(RecomputedPart part, const std::vector<at::Tensor>& inputs,
                                 const std::vector<at::Tensor>& parameters, const ForwardPass& pass,
                                 const Work& work) const {
  if (!recompute_.of(part)) return work(inputs, pass);
  return recompute(
      part, pass.faults,
      [this, part, pass = with_kept_scales(pass), work](const std::vector<at::Tensor>& kept,
                                                        bool again) {
        ForwardPass run = pass;
        run.again = run.again || again;
        const at::Tensor y = work(kept, run);
        pass.recomputes.note(part, index_, y, again);
        return y;
      },
      inputs, parameters);
}

/// body(x, pass), through the runner of `pass` if it has one. Where tokens attend to each other,
/// the documents of packed sequences are an input of the part, because its graph is replayed with
/// the documents of other microbatches.
template <class Body>
at::Tensor Layer::run_part(ModuleKind kind, const at::Tensor& x,
                           const std::vector<at::Tensor>& parameters, const ForwardPass& pass,
                           const Body& body) const {
  if (!pass.runner) return body(x, pass);
  std::vector<at::Tensor> inputs{x};
  const bool mixes_tokens =
      kind == ModuleKind::attn || kind == ModuleKind::mamba || kind == ModuleKind::layer;
  if (mixes_tokens && pass.documents.defined()) inputs.push_back(pass.documents);
  return run_module(pass, {kind, index_, pass.microbatch}, inputs, parameters,
                    [body, pass](const std::vector<at::Tensor>& given) {
                      ForwardPass run = pass;
                      if (given.size() > 1) run.documents = given[1];
                      return std::vector<at::Tensor>{body(given[0], run)};
                    })[0];
}

void Layer::count(const ForwardPass& pass) const {
  const at::Tensor& counter = pass.counters[counter_];
  if (pass.faults.counts_layer(index_, counter)) counter.add_(1);
}

}  // namespace graphproof::workloads
