// A layer of experts (Shazeer et al. 2017), as Megatron-LM runs it. A router picks K of E experts
// for each token. The experts are split over P expert parallel ranks, and each expert over T expert
// tensor parallel ranks, as an MLP is over tensor parallel ranks. The T ranks have different
// tokens, so before the experts they gather the tokens that arrived at any of them, and after the
// experts they reduce and scatter the partial sums. Tokens travel to the experts and back in four
// ways:
//   drop and pad  An expert takes at most C tokens and is padded to C, so all shapes are fixed, and
//                 a graph may hold the whole layer. All-to-all.
//   dropless      No token is dropped, so shapes depend on the tokens. The host reads how many each
//                 expert has, so exchanges and experts are eager; a graph may hold the router and
//                 the preprocessing. All-to-all, in which each part is padded to the largest part
//                 of any pair of ranks, a number that all of them know.
//   flex          Also dropless. The numbers of tokens stay on the device, and every buffer has a
//                 fixed size (flex_placement.h), so a graph may hold the whole layer. All-to-all of
//                 slots that hold all of a rank's rows. The receive buffers hold the rows of all
//                 ranks, unless an engine limits them (expert_buffers.h); rows without a place are
//                 counted as dropped. Undefined rows hold NaN in a capture and zero in eager steps,
//                 so that an influence of them shows. Every expert computes all rows of the buffer,
//                 with zeros in place of those of other experts.
//   gathered      Also dropless. Every rank gathers all tokens of its group and uses those of its
//                 experts; the results are reduced and scattered. A graph may hold the router.
//
// N tokens of this rank's microbatch, H hidden elements, F inner elements; C = ceil(N * K / E), an
// even share (capacity factor 1); R rows of the dispatch: E*C with drop and pad, N*K if dropless.
// As in Megatron-LM, the capacity is counted within one microbatch of one rank before any exchange.
// Which tokens are dropped therefore depends on how context and sequence parallel ranks split the
// sequence. A single rank that is compared with such ranks counts the tokens of each of them apart,
// with C for each of these shares (ModelConfig::capacity_cp). All indices come from stable sorts,
// so equal elements have the same order on every device; nothing uses atomics or waits for the host
// unless stated.
//
// In inference (ForwardPass::choices) what a request gets must not depend on the requests that
// share its batch. No token is dropped: with drop and pad C is N, the most that an expert can get,
// as with --moe-pad-experts-for-cuda-graph-inference of Megatron-LM. Rows that belong to no request
// choose no expert, so neither their contents nor their number of assignments matters to others.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "fixtures/tensors/torch.h"
#include "workloads/forward/forward_pass.h"
#include "workloads/layers/flex_placement.h"
#include "workloads/layers/mlp.h"
#include "workloads/parameters/parameters.h"

namespace graphproof::workloads {

/// The decisions of the router. Differentiable in `probabilities`.
struct Routing {
  at::Tensor probabilities;  // [N, E] fp32: the weight of each carried assignment, 0 elsewhere
  at::Tensor carried;        // [N, E] bool: the assignments within capacity
};

/// The local permutation: the tokens in the order in which experts take them, and the way back.
struct Dispatch {
  /// [R, H], expert by expert. With drop and pad, row e*C + c is the c-th token of expert e, and
  /// the padding is tokens with weight 0.
  at::Tensor tokens;
  at::Tensor slots;    // [N, K] int64: the rows of each token, one for each of its experts
  at::Tensor weights;  // [N, K] fp32: 0 if the assignment was dropped
  at::Tensor counts;   // [E] int64: the number of rows of each expert; undefined with drop and pad
};

/// How many rows the ranks send to each other, if dropless. Made by pack() and used by the later
/// pieces of experts(). With the flex dispatcher only `flex` is set.
struct SplitSizes {
  /// [T, P, P, E/P] int64 on the host: rows from each sender (its rank in etp, then in ep) to each
  /// receiver in ep, by expert. Undefined with drop and pad.
  at::Tensor rows;
  std::int64_t largest = 0;  // the largest number of rows from one rank to another
  std::optional<FlexPlacement> flex = {};
};

/// The router, the shared expert and the routed experts of one layer. Methods enqueue on the
/// current stream. In inference N may differ from that of a microbatch; with the flex dispatcher it
/// is at most that.
class Moe {
 public:
  /// Recommended by Megatron-LM's documentation for --moe-aux-loss-coeff and --moe-z-loss-coeff.
  static constexpr double kAuxLossCoefficient = 1e-2, kZLossCoefficient = 1e-3;

  /// With delayed weight gradients, `shared_delayed` and `experts_delayed` get those of the shared
  /// expert and of the routed experts; null otherwise.
  Moe(Parameters& parameters, const ModelConfig& config, const Layout& layout, at::Device device,
      const std::string& name, std::int64_t layer, DelayedGradients* shared_delayed = nullptr,
      DelayedGradients* experts_delayed = nullptr);

  /// hidden [N, H]. As in Megatron-LM's router: logits and the softmax over the K chosen experts in
  /// fp32 (--moe-router-dtype fp32, softmax after top-k), then the capacity by probability
  /// (--moe-token-drop-policy probs). With router_score_correction the scores of a token are
  /// sigmoids; it chooses experts by score plus correction (router_bias.h), and its weights are the
  /// scores of the chosen experts divided by their sum (--moe-router-score-function sigmoid). The
  /// losses that a router may add affect only gradients, as in Megatron-LM (MoEAuxLossAutoScaler):
  ///   router_aux_loss  Switch Transformer (Fedus et al. 2021). The sum over experts of the mean
  ///                    softmax over all experts (or scores over their sum) times the share of
  ///                    assignments before any is dropped, times E and kAuxLossCoefficient.
  ///   router_z_loss    ST-MoE (Zoph et al. 2022). The mean square of the logsumexp of the logits,
  ///                    times kZLossCoefficient.
  /// In inference the choices are written to ForwardPass::choices, or taken from there.
  Routing route(const at::Tensor& hidden, const ForwardPass& pass) const;
  /// hidden [N, H]. Returns the result of the shared expert, [N, H]; undefined without one.
  at::Tensor shared(const at::Tensor& hidden, const ForwardPass& pass) const;
  /// hidden [N, H]. The dispatch preprocessing of Megatron-LM: the local permutation, which depends
  /// only on the carried assignments.
  Dispatch preprocess(const at::Tensor& hidden, const Routing& routing,
                      const ForwardPass& pass) const;
  /// To the experts, through them and back: tokens [R, H] to results [R, H] in the same order. An
  /// all-to-all over the group ep each way, and around the experts an all-gather and a
  /// reduce-scatter over etp. If there are counts, the host waits for them, except with the flex
  /// dispatcher.
  at::Tensor experts(const at::Tensor& tokens, const at::Tensor& counts,
                     const ForwardPass& pass) const;
  /// The pieces of experts(), for a caller that does the exchanges itself: pack() makes the rows to
  /// send, exchange() is the all-to-all in either direction, expert_forward() runs this rank's
  /// experts, and unpack() returns the results [R, H]. The rows for each rank of ep are equally
  /// many; the gradient of exchange() is exchange().
  at::Tensor pack(const at::Tensor& tokens, const at::Tensor& counts, const ForwardPass& pass,
                  SplitSizes& sizes) const;
  at::Tensor exchange(const at::Tensor& rows) const;
  at::Tensor expert_forward(const at::Tensor& arrived, const SplitSizes& sizes,
                            const ForwardPass& pass) const;
  at::Tensor unpack(const at::Tensor& rows, const SplitSizes& sizes) const;
  /// results [R, H]. Returns [N, H]: the weighted sum of each token's results.
  at::Tensor combine(const at::Tensor& results, const at::Tensor& slots,
                     const at::Tensor& weights) const;

  /// Replaces preprocess(), experts() and combine() if tokens are gathered: hidden [N, H] to the
  /// weighted sum of each token's results, [N, H]. The host waits for the numbers of tokens.
  bool gathers() const { return config_.gather_tokens; }
  at::Tensor gathered_experts(const at::Tensor& hidden, const Routing& routing,
                              const ForwardPass& pass) const;

 private:
  std::vector<at::Tensor> own_experts(const std::vector<at::Tensor>& inputs,
                                      const ForwardPass& pass) const;
  at::Tensor dropless_forward(const at::Tensor& arrived, const SplitSizes& sizes,
                              const ForwardPass& pass) const;
  at::Tensor flex_forward(const at::Tensor& arrived, const FlexPlacement& placement,
                          const ForwardPass& pass) const;
  at::Tensor padded_experts(const at::Tensor& inputs, const ForwardPass& pass) const;
  at::Tensor product(const at::Tensor& x, const UsedWeight& weight, const at::Tensor& main_gradient,
                     std::optional<std::int64_t> expert = std::nullopt) const;
  at::Tensor activated(const at::Tensor& inner, const ForwardPass& pass) const;
  at::Tensor gather_over_etp(const at::Tensor& rows) const;
  at::Tensor reduce_over_etp(const at::Tensor& rows, const ForwardPass& pass) const;
  at::Tensor chosen_experts(const at::Tensor& scores, const ForwardPass& pass) const;
  std::int64_t capacity(std::int64_t tokens, const ForwardPass& pass) const;
  void sum_over_sequence(const at::Tensor& counts) const;
  std::int64_t shares() const;
  at::Tensor by_expert(const at::Tensor& of_tokens) const;
  at::Tensor places(const at::Tensor& order) const;

  ModelConfig config_;
  Layout layout_;
  std::int64_t layer_, capacity_;  // C of a microbatch that is trained
  DelayedGradients* delayed_;      // of the routed experts; null if their gradients are not delayed
  at::Tensor expert_ids_;          // [E] int64: 0 .. E - 1
  /// [N] int64: the tokens share by share, and the place of each token in that order. Undefined for
  /// one share.
  at::Tensor by_share_, place_by_share_;
  at::Tensor row_numbers_;   // [T * P * N * K] int64: 0, 1, 2 ...; only with the flex dispatcher
  at::Tensor router_;        // [E, H]
  std::vector<Mlp> shared_;  // one or none
  std::vector<at::Tensor> shared_parameters_;
  at::Tensor up_, down_;            // [E/P, F/T, H] or with a gate [E/P, 2*F/T, H]; [E/P, H, F/T]
  at::Tensor up_bias_, down_bias_;  // [E/P, 1, F or 2*F], [E/P, 1, H]; none if experts are split
};

}  // namespace graphproof::workloads
