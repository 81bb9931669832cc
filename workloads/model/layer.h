// One layer of the model. A transformer layer is x + dropout(attention(norm(x))) followed by the
// same with the MLP or the experts; a mamba layer is x + dropout(mixer(norm(x))) alone. In a hybrid
// model the two kinds alternate: letters M and *- or *E in Megatron-LM's pattern, where attention
// and the part after it have letters of their own.
//
// The layer and each of its branches are parts that a graph may hold alone (module_runner.h), and
// so are two parts of an expert layer: moe_router is the norm, the router and the shared expert
// (without it if shared_expert_overlap is on), moe_preprocess the local permutation after it. The
// exchanges, the experts and the combination are then eager, and so is an overlapped shared expert.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fixtures/tensors/torch.h"
#include "workloads/layers/attention.h"
#include "workloads/layers/delayed_gradients.h"
#include "workloads/layers/mamba.h"
#include "workloads/layers/mlp.h"
#include "workloads/layers/moe.h"
#include "workloads/layers/norm.h"

namespace graphproof::workloads {

/// Creates its parameters in `parameters` under its name. The tables outlive it. Its
/// methods enqueue on the current stream; N tokens of this rank in a microbatch, P parts of a
/// sequence outside tensor parallel regions (tensor_parallel.h), H hidden elements.
class Layer {
 public:
  /// Which layer of the whole model it is, its name there (ModelConfig::layer_name), and the index
  /// of its counter in ForwardPass::counters.
  struct Place {
    std::int64_t index;
    std::string name;
    std::size_t counter;
  };
  Layer(Parameters& parameters, const ModelConfig& config, const Layout& layout,
        const AttentionTables& tables, const MambaTables& mamba_tables, at::Device device,
        Place place);

  std::int64_t index() const { return index_; }
  bool has_experts() const { return moe_.has_value(); }
  bool recomputes() const { return recompute_.any(); }
  const std::vector<at::Tensor>& parameters() const { return parameters_; }

  /// x [N/P, H] outside tensor parallel regions. Returns the same shape. Adds one to the layer's
  /// counter, except when recompute runs it again.
  at::Tensor forward(const at::Tensor& x, const ForwardPass& pass) const;

  /// What before_experts() passes on to the later pieces apart from tensors with gradients.
  struct RoutingState {
    at::Tensor slots;  // [N, K] int64, see Dispatch
    SplitSizes sizes;
  };
  /// Among the tensors between the pieces, the index of the rows that travel to the experts and
  /// back.
  static constexpr std::size_t kPacked = 1;
  /// forward() in three pieces, between which LayerPass exchanges the tokens. before_experts() is
  /// the attention, the router and the permutation, parts of which a runner may hold as graphs. It
  /// returns the residual [N/P, H], the packed rows, the weights [N, K] and, if there is a shared
  /// expert, its result [N/P, H]. expert_forward() runs this rank's experts on the rows that
  /// arrived. after_experts() takes what before_experts() returned, with the rows that came back.
  std::vector<at::Tensor> before_experts(const at::Tensor& x, const ForwardPass& pass,
                                         RoutingState& routing) const;
  at::Tensor expert_forward(const at::Tensor& arrived, const ForwardPass& pass,
                            const RoutingState& routing) const;
  at::Tensor after_experts(const std::vector<at::Tensor>& tensors, const ForwardPass& pass,
                           const RoutingState& routing) const;
  /// Adds the weight gradients that the backwards of the first two pieces deferred
  /// (delayed_gradients.h); the weights that have such gradients. REQUIRES: has_experts().
  void before_experts_weight_gradients(const ForwardPass& pass) const;
  void expert_weight_gradients() const { experts_delayed_->add(); }
  const std::vector<at::Tensor>& before_experts_weights() const { return before_experts_weights_; }
  const std::vector<at::Tensor>& expert_weights() const { return expert_weights_; }
  /// Discards the pending weight gradients, after an error ended the step.
  void discard_delayed() const;
  /// At the end of a step: throws std::logic_error if weight gradients are pending.
  void require_none_pending() const;

 private:
  std::array<DelayedGradients*, 3> all_delayed() const {
    return {attention_delayed_.get(), shared_delayed_.get(), experts_delayed_.get()};
  }
  void add_delayed(ModuleKind kind, DelayedGradients& delayed, const ForwardPass& pass) const;

  at::Tensor mamba_part(const at::Tensor& x, const ForwardPass& pass) const;
  at::Tensor attention_part(const at::Tensor& x, const ForwardPass& pass) const;
  at::Tensor mlp_part(const at::Tensor& x, const ForwardPass& pass) const;
  at::Tensor moe_part(const at::Tensor& x, const ForwardPass& pass) const;

  std::vector<at::Tensor> router_part(const at::Tensor& x, const ForwardPass& pass) const;
  std::vector<at::Tensor> preprocess_part(const std::vector<at::Tensor>& routed,
                                          const ForwardPass& pass) const;
  at::Tensor exchanged_experts(const std::vector<at::Tensor>& routed, const at::Tensor& hidden,
                               const ForwardPass& pass) const;
  at::Tensor gathered_experts(const std::vector<at::Tensor>& routed, const ForwardPass& pass) const;
  template <class RoutedExperts>
  at::Tensor with_overlapped_shared_expert(const at::Tensor& hidden, const ForwardPass& pass,
                                           const RoutedExperts& routed_experts) const;
  at::Tensor recomputed_experts(const at::Tensor& input, const ForwardPass& pass) const;

  at::Tensor normalized(RecomputedPart part, const at::Tensor& x, const ForwardPass& pass) const;
  template <class Work>
  at::Tensor with_recompute(RecomputedPart part, const at::Tensor& x,
                            const std::vector<at::Tensor>& parameters, const ForwardPass& pass,
                            const Work& work) const;
  template <class Work>
  at::Tensor with_recompute(RecomputedPart part, const std::vector<at::Tensor>& inputs,
                            const std::vector<at::Tensor>& parameters, const ForwardPass& pass,
                            const Work& work) const;
  template <class Body>
  at::Tensor run_part(ModuleKind kind, const at::Tensor& x,
                      const std::vector<at::Tensor>& parameters, const ForwardPass& pass,
                      const Body& body) const;
  void count(const ForwardPass& pass) const;

  std::int64_t index_;
  RecomputeConfig recompute_;
  std::size_t counter_;
  std::string name_;
  Norm first_norm_;
  std::unique_ptr<DelayedGradients> attention_delayed_, shared_delayed_,
      experts_delayed_;  // null without delay_wgrad
  // Either mamba_, or attention_ and mlp_norm_ with one of mlp_ and moe_.
  std::optional<Mamba> mamba_;
  std::optional<Attention> attention_;
  std::optional<Norm> mlp_norm_;
  std::optional<Mlp> mlp_;
  std::optional<Moe> moe_;
  // Of the parts that a runner may hold.
  std::vector<at::Tensor> parameters_, attention_parameters_, mlp_parameters_, router_parameters_;
  // Of the parts that may be recomputed.
  std::vector<at::Tensor> attention_norm_parameters_, mlp_norm_parameters_, after_norm_parameters_,
      after_router_parameters_;
  std::vector<at::Tensor> no_parameters_;
  std::vector<at::Tensor> before_experts_weights_, expert_weights_;  // with delayed gradients
};

}  // namespace graphproof::workloads
