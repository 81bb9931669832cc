// What corrects the scores by which a router chooses (Wang et al. 2024, auxiliary-loss-free
// balancing; Megatron-LM's
// --moe-router-enable-expert-bias): a number for each expert that grows while it has fewer tokens
// than the mean and shrinks while it has more. It decides who is chosen and weighs nothing.
#pragma once

#include <vector>

#include "fixtures/comm/collectives.h"
#include "fixtures/tensors/named_tensor.h"
#include "fixtures/tensors/torch.h"
#include "workloads/config/model_config.h"

namespace graphproof::workloads {

class RouterBias {
 public:
  /// --moe-router-bias-update-rate, upstream's default.
  static constexpr double kRate = 1e-3;

  RouterBias(const ModelConfig& config, const Layout& layout, at::Device device)
      : config_(config), layout_(layout) {
    if (config.router_score_correction)
      bias_ = at::zeros({layout.expert_layers(config), config.experts},
                        at::TensorOptions().device(device).dtype(at::kFloat));
  }

  /// [E] fp32, of a layer of this stage, counted in the whole model. REQUIRES: the model has score
  /// correction.
  at::Tensor of(std::int64_t layer) const {
    return bias_.select(0, layout_.expert_place(config_, layer));
  }

  /// At the end of a step's backward: assigned [L, E] int64 in, L expert layers of this stage, the
  /// tokens that chose each expert on this rank in that step. Enqueues the sum over all ranks with
  /// other tokens and the update; capturable. Without effect where there is no correction.
  void update(const at::Tensor& assigned) {
    if (!bias_.defined()) return;
    at::Tensor tokens = assigned.to(at::kFloat);
    if (layout_.replicas() > 1) comm::all_reduce_(tokens, layout_.replica_group());
    if (layout_.sequence_parallel && layout_.tp > 1) comm::all_reduce_(tokens, layout_.tp_group);
    bias_.add_(at::sign(tokens.mean({1}, /*keepdim=*/true) - tokens), kRate);
  }

  /// "state:router_bias" [L, E], static; part of what training carries from step to step.
  void append_to(std::vector<fixtures::NamedTensor>& state) const {
    if (bias_.defined()) state.push_back({"state:router_bias", bias_});
  }

 private:
  ModelConfig config_;
  Layout layout_;
  at::Tensor bias_;
};

}  // namespace graphproof::workloads
