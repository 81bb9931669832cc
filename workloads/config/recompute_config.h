// Which parts of a model the backward computes again. Plain values, spelled as those of axis
// recompute (Megatron-LM --recompute-granularity, --recompute-method, --recompute-num-layers,
// --recompute-modules).
//
// Selective recompute discards the activations inside a module:
//   core_attn       scores and probabilities
//   mlp             the feed-forward part after its norm
//   moe             the expert layer after its norm, or after its router if a graph holds it
//   moe_act         the activation of the experts
//   layernorm       the two norms of a layer
//   mla_up_proj     queries, keys and values of latent attention, from its latents
//   shared_experts  the shared expert
// Full recompute keeps only inputs of layers. `uniform` keeps the input of every group of `layers`
// layers; `block` recomputes the first `layers` layers one by one and keeps all activations of the
// others. Both count within a chunk of a pipeline stage.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <initializer_list>
#include <string_view>
#include <vector>

namespace graphproof::workloads {

/// A part of a layer that the backward runs again. The module layernorm is two of these parts;
/// `layer` is used by full recompute only.
enum class RecomputedPart {
  core_attn,
  mlp,
  moe,
  moe_act,
  attention_norm,
  mlp_norm,
  shared_experts,
  layer,
  mla_up_proj
};
inline constexpr std::array<std::string_view, 9> kRecomputedParts{
    "core_attn",      "mlp",   "moe",        "moe_act", "attention_norm", "mlp_norm",
    "shared_experts", "layer", "mla_up_proj"};
inline std::string_view name(RecomputedPart part) {
  return kRecomputedParts[static_cast<std::size_t>(part)];
}

/// The parts that are recomputed, and in which layers.
struct RecomputeConfig {
  enum class Method { selective, uniform, block };
  Method method = Method::selective;
  std::vector<RecomputedPart> parts = {};  // exactly {layer} with uniform and block
  std::int64_t layers = 0;                 // used by uniform and block
  /// The part moe begins after router and preprocessing, so these are not run again; the exchanges,
  /// the experts and the combination are. (Megatron-LM's local graphs also replay the graph of the
  /// router in the second run; rules R079 and R139.)
  bool after_router = false;

  bool any() const { return !parts.empty(); }
  bool full() const { return method != Method::selective; }
  bool of(RecomputedPart part) const {
    return std::find(parts.begin(), parts.end(), part) != parts.end();
  }
  /// Whether layers of multi-token prediction are recomputed too. As in Megatron-LM they are not
  /// with the method block.
  bool of_prediction_layers() const { return any() && method != Method::block; }
  /// The number of layers, at the front of a chunk with `all` layers, of which at least a part is
  /// recomputed.
  std::int64_t recomputed_layers(std::int64_t all) const {
    return !any() ? 0 : method == Method::block ? std::min(layers, all) : all;
  }
};

inline RecomputeConfig selective(std::initializer_list<RecomputedPart> parts) {
  return {.parts = parts};
}
inline RecomputeConfig full(RecomputeConfig::Method method, std::int64_t layers) {
  return {.method = method, .parts = {RecomputedPart::layer}, .layers = layers};
}

}  // namespace graphproof::workloads
