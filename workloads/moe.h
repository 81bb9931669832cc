// A layer of experts (Shazeer et al. 2017) as Megatron-LM runs it under CUDA graphs: a router picks K of E experts for
// each token, every expert takes C tokens at most and is padded to C (drop and pad), so that all shapes are fixed; the
// experts lie on P expert parallel ranks, and an all-to-all carries the tokens there and back.
//
// N tokens of this rank's microbatch, H hidden, F inner elements; C = ceil(N * K / E): an even share, capacity factor 1.
// Capacity is counted within one microbatch of one rank before any exchange, as upstream's, so which tokens are dropped
// does not depend on the layout. All indices come from stable sorts: ties have one order on every device, nothing is
// atomic and the host is never asked.
#pragma once

#include <string>
#include <vector>

#include "fixtures/torch.h"
#include "workloads/forward_pass.h"
#include "workloads/mlp.h"
#include "workloads/parameters.h"

namespace graphproof::workloads {

/// What the router decided. Differentiable in probabilities and hidden.
struct Routing {
  at::Tensor probabilities;  // [N, E] fp32: weight of each carried assignment, 0 elsewhere
  at::Tensor carried;        // [N, E] bool: assignments within capacity
};

/// What the dispatch needs: tokens in the order in which experts take them, and the way back.
struct Dispatch {
  at::Tensor tokens;   // [E*C, H]: row e*C + c is the c-th token of expert e; padded with tokens that weigh nothing
  at::Tensor slots;    // [N, K] int64: the row of each of a token's experts
  at::Tensor weights;  // [N, K] fp32: 0 where the assignment was dropped
};

class Moe {
 public:
  Moe(Parameters& parameters, const ModelConfig& config, const Layout& layout, at::Device device, const std::string& name,
      std::int64_t layer);

  /// hidden [N, H]. Upstream's route(): logits and softmax over the K chosen in fp32 (--moe-router-dtype fp32, softmax
  /// after top-k), then capacity by probability (--moe-token-drop-policy probs).
  Routing route(const at::Tensor& hidden, const ForwardPass& pass) const;
  /// hidden [N, H]. Returns [N, H], the shared expert's part; undefined without one.
  at::Tensor shared(const at::Tensor& hidden, const ForwardPass& pass) const;
  /// Upstream's dispatch preprocessing: the local permutation, from the map of carried assignments alone.
  Dispatch preprocess(const at::Tensor& hidden, const Routing& routing, const ForwardPass& pass) const;
  /// To the experts, through them and back: tokens [E*C, H] to [E*C, H]. All-to-all over the group ep.
  at::Tensor experts(const at::Tensor& tokens, const ForwardPass& pass) const;
  /// results [E*C, H]. Returns [N, H]: each token's weighted sum over its experts.
  at::Tensor combine(const at::Tensor& results, const at::Tensor& slots, const at::Tensor& weights) const;

 private:
  at::Tensor activated(const at::Tensor& inner, const ForwardPass& pass) const;
  at::Tensor exchange(const at::Tensor& rows) const;

  ModelConfig config_;
  Layout layout_;
  std::int64_t layer_, capacity_;
  at::Tensor expert_ids_;         // [E] int64
  at::Tensor router_;             // [E, H]
  std::vector<Mlp> shared_;       // one or none
  std::vector<at::Tensor> shared_parameters_;
  at::Tensor up_, down_;          // [E/P, F, H] or with a gate [E/P, 2*F, H], [E/P, H, F]
  at::Tensor up_bias_, down_bias_;  // [E/P, 1, F or 2*F], [E/P, 1, H]
};

}  // namespace graphproof::workloads
