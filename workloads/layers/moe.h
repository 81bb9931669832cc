// A layer of experts (Shazeer et al. 2017) as Megatron-LM runs it: a router picks K of E experts
// for each token, the experts lie on P expert parallel ranks, each cut over T expert tensor
// parallel ones as an MLP is over tensor parallel ones, and tokens are carried there and back in
// one of three ways. The T ranks have other tokens: what arrives at one of them is gathered by all
// before the experts, and their partial sums are reduced and scattered behind.
//   drop and pad  every expert takes C tokens at most and is padded to C, so that all shapes are
//   fixed and a graph may
//                 hold the layer; all-to-all
//   dropless      no token is lost, and shapes depend on them: the host reads how many each expert
//   has, so experts and
//                 exchange are eager; a graph may hold router and preprocessing; all-to-all, whose
//                 parts are padded to the largest of any pair of ranks, a number that all of them
//                 know
//   gathered      dropless too: every rank gets all tokens of its group and picks those of its
//   experts; all-gather, and
//                 reduce-scatter of the results; a graph may hold the router
//
// N tokens of this rank's microbatch, H hidden, F inner elements; C = ceil(N * K / E): an even
// share, capacity factor 1; R rows of the dispatch: E*C with drop and pad, N*K dropless. Capacity
// is counted within one microbatch of one rank before any exchange, as upstream's. So which tokens
// are dropped depends on how context and sequence parallel ranks cut the sequence; a single rank
// that is to be compared with such ranks counts each one's tokens apart (ModelConfig::capacity_cp),
// C for each of these shares. All indices come from stable sorts: ties have one order on every
// device, nothing is atomic and the host is never asked.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "fixtures/tensors/torch.h"
#include "workloads/forward/forward_pass.h"
#include "workloads/layers/mlp.h"
#include "workloads/parameters/parameters.h"

namespace graphproof::workloads {

/// What the router decided. Differentiable in probabilities and hidden.
struct Routing {
  at::Tensor probabilities;  // [N, E] fp32: weight of each carried assignment, 0 elsewhere
  at::Tensor carried;        // [N, E] bool: assignments within capacity
};

/// What the dispatch needs: tokens in the order in which experts take them, and the way back.
struct Dispatch {
  at::Tensor tokens;  // [R, H]: expert by expert; row e*C + c is the c-th token of expert e, padded
                      // with tokens that weigh nothing
  at::Tensor slots;   // [N, K] int64: the row of each of a token's experts
  at::Tensor weights;  // [N, K] fp32: 0 where the assignment was dropped
  at::Tensor counts;   // [E] int64: rows of each expert; undefined with drop and pad
};

/// What experts() carries from one of its pieces to the next, where tokens are dropless: how many
/// the host found.
struct Lots {
  at::Tensor rows;  // [T, P, P, E/P] int64 on the host: of each sender, first by its place in etp,
                    // to each receiver, by expert
  std::int64_t most = 0;  // that any rank sends any other
};

class Moe {
 public:
  /// What Megatron-LM's manual recommends for --moe-aux-loss-coeff and --moe-z-loss-coeff.
  static constexpr double kAuxLossCoefficient = 1e-2, kZLossCoefficient = 1e-3;

  Moe(Parameters& parameters, const ModelConfig& config, const Layout& layout, at::Device device,
      const std::string& name, std::int64_t layer, DelayedGradients* shared_delayed = nullptr,
      DelayedGradients* experts_delayed = nullptr);

  /// hidden [N, H]. Upstream's route(): logits and softmax over the K chosen in fp32
  /// (--moe-router-dtype fp32, softmax after top-k), then capacity by probability
  /// (--moe-token-drop-policy probs). With router_score_correction a token's scores are sigmoids,
  /// it chooses by them plus router_bias.h, and the scores of the chosen ones over their sum are
  /// its weights (--moe-router-score-function sigmoid). The losses that a router may add to the
  /// model's reach the gradients alone, as upstream's (MoEAuxLossAutoScaler):
  ///   router_aux_loss  that of Switch Transformer (Fedus et al. 2021): the sum over experts of the
  ///   mean softmax over all of
  ///                    them (or of the scores over their sum) times the share of assignments,
  ///                    before any is dropped, times E and kAuxLossCoefficient
  ///   router_z_loss    that of ST-MoE (Zoph et al. 2022): the mean square of the logits' logsumexp
  ///   times kZLossCoefficient
  Routing route(const at::Tensor& hidden, const ForwardPass& pass) const;
  /// hidden [N, H]. Returns [N, H], the shared expert's part; undefined without one.
  at::Tensor shared(const at::Tensor& hidden, const ForwardPass& pass) const;
  /// Upstream's dispatch preprocessing: the local permutation, from the map of carried assignments
  /// alone.
  Dispatch preprocess(const at::Tensor& hidden, const Routing& routing,
                      const ForwardPass& pass) const;
  /// To the experts, through them and back: tokens [R, H] to [R, H], in the same order. All-to-all
  /// over the group ep, around an all-gather and a reduce-scatter over etp. Where there are counts
  /// the host waits for them.
  at::Tensor experts(const at::Tensor& tokens, const at::Tensor& counts,
                     const ForwardPass& pass) const;
  /// experts() in pieces, for who exchanges by himself: departing rows, their exchange() to the
  /// experts, the experts' own work, the exchange() back, and the results [R, H]. Rows are equally
  /// many for each rank of ep; exchange() is its own gradient's.
  at::Tensor departing(const at::Tensor& tokens, const at::Tensor& counts, Lots& lots) const;
  at::Tensor exchange(const at::Tensor& rows) const;
  at::Tensor own_work(const at::Tensor& arrived, const Lots& lots, const ForwardPass& pass) const;
  at::Tensor returned(const at::Tensor& rows, const Lots& lots) const;
  /// results [R, H]. Returns [N, H]: each token's weighted sum over its experts.
  at::Tensor combine(const at::Tensor& results, const at::Tensor& slots,
                     const at::Tensor& weights) const;

  /// In place of the three, gathered: hidden [N, H] to [N, H], each token's weighted sum. The host
  /// waits for the numbers of tokens.
  bool gathers() const { return config_.gather_tokens; }
  at::Tensor gathered_experts(const at::Tensor& hidden, const Routing& routing,
                              const ForwardPass& pass) const;

 private:
  std::vector<at::Tensor> own_experts(const std::vector<at::Tensor>& inputs,
                                      const ForwardPass& pass) const;
  at::Tensor dropless_work(const at::Tensor& arrived, const Lots& lots,
                           const ForwardPass& pass) const;
  /// x times the weight of all own experts, or of one; main_gradient is that of all.
  at::Tensor product(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& main_gradient,
                     std::optional<std::int64_t> expert = std::nullopt) const;
  at::Tensor activated(const at::Tensor& inner, const ForwardPass& pass) const;
  at::Tensor to_parts(const at::Tensor& rows) const;  // all-gather over etp
  at::Tensor from_parts(const at::Tensor& rows,
                        const ForwardPass& pass) const;  // reduce-scatter over etp
  void sum_over_sequence(
      const at::Tensor& counts) const;  // over ranks with other parts of the same sequences
  std::int64_t shares() const;          // of a microbatch, with a capacity each
  /// of_tokens [N, E], a share's tokens together: [shares * E, N / shares]; and back, from the
  /// order in which each row takes its tokens to [N, E], a token's place in it.
  at::Tensor by_expert(const at::Tensor& of_tokens) const;
  at::Tensor places(const at::Tensor& order) const;

  ModelConfig config_;
  Layout layout_;
  std::int64_t layer_, capacity_;
  DelayedGradients* delayed_;   // of the routed experts
  at::Tensor expert_ids_;       // [E] int64
  at::Tensor by_share_, back_;  // [N] int64: tokens share by share, and each token's place there;
                                // undefined for one share
  at::Tensor router_;           // [E, H]
  std::vector<Mlp> shared_;     // one or none
  std::vector<at::Tensor> shared_parameters_;
  at::Tensor up_, down_;            // [E/P, F/T, H] or with a gate [E/P, 2*F/T, H], [E/P, H, F/T]
  at::Tensor up_bias_, down_bias_;  // [E/P, 1, F or 2*F], [E/P, 1, H]; none where experts are cut
};

}  // namespace graphproof::workloads
