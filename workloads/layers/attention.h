// Self attention, causal unless the model is bidirectional, with rotary positions (Su et al. 2021),
// unless the embedding has positions, and grouped keys and values (Ainslie et al. 2023). With
// multi_latent_attention queries, keys and values come from latents, and part of each query and key
// is rotated whatever the embedding has (latent_projections.h). Heads are
// split over the T tensor parallel ranks, sequences over the context parallel ranks
// (context_parallel.h).
//
// A rank has S of the A tokens of each of its sequences; without context parallelism S is A. Its
// queries attend to the keys of all ranks. With all_gather, one collective gathers the keys and
// values. With p2p (ring attention, Liu et al. 2023) those of one rank at a time travel around the
// ring; attention to each piece is computed alone, and the results are weighted by the sums of
// exponentials by which their softmaxes divided. Pieces that the mask hides completely are also
// computed, with weight 0, so that all ranks run the same operators and have the same graph. The
// backward sums the gradients of a rank's keys and values over all ranks.
//
// Packed sequences (data.h): a token attends only to earlier tokens of its own document, and its
// position counts from the beginning of that document (Megatron-LM's --reset-attention-mask and
// --reset-position-ids). Shapes stay the same; mask and angles are computed from the documents of
// each microbatch.
//
// Instead of products and a softmax, attention_kernel can be one of PyTorch's fused kernels, for
// the causal mask of whole sequences without dropout. Their backward passes add with atomics on
// CUDA, in an order that changes from run to run, unless torch.use_deterministic_algorithms is on.
//
// G key-value groups, R = heads/G query heads in a group; D = H/heads elements of a value, E of a
// query or key, W of them rotated: E = W = D without latents; N = B*S tokens, P parts of a sequence
// (tensor_parallel.h). As in Megatron-LM, the rows of the projection
// are ordered by group: R query heads, the key, the value. A rank's shard therefore holds whole
// groups, and the R heads of a group need one matrix product with the key that they share.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "fixtures/tensors/torch.h"
#include "workloads/forward/forward_pass.h"
#include "workloads/layers/latent_projections.h"
#include "workloads/layers/linear.h"

namespace graphproof::workloads {

/// Constants on the device that the attention of every layer uses. Made once, because a capture
/// must not build them from host data.
struct AttentionTables {
  /// The base wavelength of the rotary angles: the default of Megatron-LM's --rotary-base.
  static constexpr double kRotaryBase = 10000.0;
  /// Added to the scores of later positions. Its exponential is 0 in fp32 and bf16, and unlike -inf
  /// it cannot lead to NaN.
  static constexpr double kMasked = -10000.0;

  AttentionTables(const ModelConfig& config, const Layout& layout, at::Device device,
                  faults::FaultHooks& faults);

  /// [S, 1, 1, W] of the model's type, packed [A, 1, 1, W]; undefined without rotary positions. The
  /// sines of the first W/2 elements are negative, because the rotation is computed as
  /// x * cosine + (x with its halves swapped) * sine.
  at::Tensor cosine, sine;
  at::Tensor causal;  // [1, R*S, A] of the model's type: 0 or kMasked; keys rank by rank
  /// Only for context parallel ranks, whose steps may be shorter than the model's sequences:
  /// `cosine` and `sine` of all positions in order, [A, 1, 1, W].
  at::Tensor cosine_of_all, sine_of_all;
  /// Only for packed sequences. [S] and [A] int64: the positions of this rank's tokens and of the
  /// keys; [S, A] bool: the keys that `causal` does not mask.
  at::Tensor own, all, upto;
};

/// The mask and the rotary angles for the sequences of one microbatch.
struct AttentionInputs {
  at::Tensor mask;          // [1 or B*G/T, R*S, A] of the model's type, added to the scores
  at::Tensor cosine, sine;  // [S, 1, 1, W] or [B, S, 1, 1, W]
};

/// The attention of one layer with its projections.
class Attention {
 public:
  /// `tables` and `delayed` outlive it. `delayed`: see linear_product().
  Attention(Parameters& parameters, const ModelConfig& config, const Layout& layout,
            const AttentionTables& tables, const std::string& name, std::int64_t layer,
            DelayedGradients* delayed = nullptr);

  /// x [N/P, H] outside the tensor parallel region. Returns the same shape, also outside it. With
  /// ForwardPass::cached the N rows are single tokens of any requests: their keys and values are
  /// kept, or the latents of these, and each attends to what its request has kept. Requires rotary
  /// positions, and that sequences are not split.
  at::Tensor forward(const at::Tensor& x, const ForwardPass& pass) const;

 private:
  /// query [B*G/T, R*S, E], key [B*G/T, E, S], value [B*G/T, S, D].
  struct Heads {
    at::Tensor query, key, value;
  };
  Heads projected(const at::Tensor& x, const AttentionInputs& inputs,
                  const ForwardPass& pass) const;
  Heads from_latents(const at::Tensor& x, const AttentionInputs& inputs,
                     const ForwardPass& pass) const;
  at::Tensor up_projected(const Latents& latents, const AttentionInputs& inputs,
                          const ForwardPass& pass) const;
  at::Tensor core_attention(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                            const at::Tensor& mask, const ForwardPass& pass, bool again) const;
  at::Tensor attend_to_all(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                           const at::Tensor& mask, const ForwardPass& pass,
                           DropoutPlace place) const;
  at::Tensor attend_fused(const at::Tensor& query, const at::Tensor& key,
                          const at::Tensor& value) const;
  at::Tensor attend_to_kept(const at::Tensor& mixed, const CachedTokens& cached) const;
  at::Tensor attend_to_latents(const at::Tensor& x, const ForwardPass& pass) const;
  at::Tensor rotate_to(const at::Tensor& positions, const at::Tensor& x) const;
  at::Tensor gathered(const at::Tensor& own) const;
  at::Tensor ring_attention(const at::Tensor& query, const at::Tensor& own, const at::Tensor& sent,
                            const at::Tensor& mask, const ForwardPass& pass,
                            DropoutPlace place) const;
  at::Tensor keys_of(const at::Tensor& both) const;
  at::Tensor values_of(const at::Tensor& both) const;
  double scale() const;

  AttentionInputs inputs_up_to(std::int64_t length) const;
  AttentionInputs inputs_of_parts(std::int64_t length) const;
  AttentionInputs inputs_within(const at::Tensor& documents) const;
  at::Tensor rotate(const at::Tensor& x, const AttentionInputs& inputs) const;

  ModelConfig config_;
  Layout layout_;
  std::int64_t layer_;
  const AttentionTables& tables_;
  std::int64_t groups_, heads_of_group_, width_, value_width_;  // G/T, R, E, D
  std::optional<ColumnParallelLinear> qkv_;                     // either these
  std::optional<LatentProjections> latent_;                     // or these
  RowParallelLinear projection_;
};

}  // namespace graphproof::workloads
