// A correction of the scores by which a router chooses experts (Wang et al. 2024, auxiliary-loss-
// free balancing; Megatron-LM's --moe-router-enable-expert-bias). Each expert has a number that
// grows while the expert has fewer tokens than the mean and shrinks while it has more. It affects
// which experts are chosen, but not their weights.
#pragma once

#include <vector>

#include "fixtures/comm/collectives.h"
#include "fixtures/tensors/named_tensor.h"
#include "fixtures/tensors/torch.h"
#include "workloads/config/model_config.h"

namespace graphproof::workloads {

/// The corrections of all expert layers of this stage. Static tensors, part of the training state.
class RouterBias {
 public:
  /// The default of --moe-router-bias-update-rate.
  static constexpr double kRate = 1e-3;

  RouterBias(const ModelConfig& config, const Layout& layout, at::Device device)
      : config_(config), layout_(layout) {
    if (config.router_score_correction)
      bias_ = at::zeros({layout.expert_layers(config), config.experts},
                        at::TensorOptions().device(device).dtype(at::kFloat));
  }

  /// [E] fp32: the corrections of a layer of this stage (index in the whole model). REQUIRES: the
  /// model has score correction.
  at::Tensor of(std::int64_t layer) const {
    return bias_.select(0, layout_.expert_place(config_, layer));
  }

  /// Called at the end of a step's backward. assigned [L, E] int64: the number of tokens on this
  /// rank that chose each expert of the L expert layers in that step. Sums them over all ranks with
  /// different tokens and updates the corrections; capturable. Does nothing without correction.
  void update(const at::Tensor& assigned) {
    if (!bias_.defined()) return;
    at::Tensor tokens = assigned.to(at::kFloat);
    if (layout_.replicas() > 1) comm::all_reduce_(tokens, layout_.replica_group());
    if (layout_.sequence_parallel && layout_.tp > 1) comm::all_reduce_(tokens, layout_.tp_group);
    bias_.add_(at::sign(tokens.mean({1}, /*keepdim=*/true) - tokens), kRate);
  }

  /// Appends "state:router_bias" [L, E], static.
  void append_to(std::vector<fixtures::NamedTensor>& state) const {
    if (bias_.defined()) state.push_back({"state:router_bias", bias_});
  }

 private:
  ModelConfig config_;
  Layout layout_;
  at::Tensor bias_;
};

}  // namespace graphproof::workloads
