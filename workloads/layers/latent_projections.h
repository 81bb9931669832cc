// The projections of multi-head latent attention (DeepSeek-V2, DeepSeek-AI 2024; Megatron-LM's
// --multi-latent-attention). Queries come from one latent, keys and values from another: a
// down-projection to few elements, a norm, and an up-projection to all heads. The last elements of
// each query and key have rotary positions and the others none. The rotary part of a key comes
// directly from the token, and all heads share it.
//
// As in Transformer Engine's layers, every tensor parallel rank has the down-projections and norms
// whole, outside of the tensor parallel region. The region begins with the up-projections, whose
// outputs are split by heads, and with the shared rotary part of the keys: the gradients that the
// heads of all ranks give it are summed there.
//
// Inference keeps the latents of keys and values, which are much smaller, and makes the keys and
// values of earlier tokens from them where it attends to these (Megatron-LM's --cache-mla-latents).
//
// N tokens, P parts of a sequence (tensor_parallel.h), H hidden elements, T ranks, h heads of a
// rank; C and K elements of the two latents, D of a value, W of the rotary part (ModelConfig).
#pragma once

#include <string>
#include <vector>

#include "fixtures/tensors/torch.h"
#include "workloads/layers/linear.h"
#include "workloads/layers/norm.h"

namespace graphproof::workloads {

/// The latents of the tokens of one microbatch, outside of the tensor parallel region, normalised:
/// query [N/P, C]; key_value [N/P, K]; rotary [N/P, W], the rotary part of the keys before its
/// rotation, which has no norm.
struct Latents {
  at::Tensor query, key_value, rotary;
};
/// What the up-projections make of them, for the heads of this rank: query [N, h, D + W], whose
/// rotary part is last and not rotated yet; key_value [N, h, 2*D], the keys without their rotary
/// part and the values; rotary [N, W].
struct UpProjected {
  at::Tensor query, key_value, rotary;
};

/// The projections of one layer, without the one of attention's output.
class LatentProjections {
 public:
  /// `delayed`: see linear_product(); it outlives the object.
  LatentProjections(Parameters& parameters, const ModelConfig& config, const Layout& layout,
                    const std::string& name, DelayedGradients* delayed = nullptr);

  /// x [N/P, H].
  Latents down(const at::Tensor& x, const ForwardPass& pass) const;
  UpProjected up(const Latents& latents, const ForwardPass& pass) const;
  /// The queries [N, h, D + W] of query latents [N/P, C], as in UpProjected.
  at::Tensor queries(const at::Tensor& query, const ForwardPass& pass) const;
  /// The keys and values [N, h, 2*D] of their latents [N/P, K], as in UpProjected.
  at::Tensor keys_and_values(const at::Tensor& key_value, const ForwardPass& pass) const;
  /// The parameters that up() uses, as a recomputed part declares them.
  const std::vector<at::Tensor>& up_parameters() const { return up_parameters_; }

 private:
  ModelConfig config_;
  Layout layout_;
  DuplicatedLinear query_down_, key_value_down_;  // [C, H], [K + W, H]
  Norm query_norm_, key_value_norm_;
  ColumnParallelLinear query_up_, key_value_up_;  // [heads * (D + W) / T, C], [heads * 2*D / T, K]
  std::vector<at::Tensor> up_parameters_;
};

}  // namespace graphproof::workloads
