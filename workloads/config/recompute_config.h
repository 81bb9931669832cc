// What of a model is computed again in backward. Plain values, spelled as the axis recompute.
//
// Selective recompute drops what lies inside a module: core_attn the scores and probabilities, mlp
// the whole feed-forward part behind its norm, moe the whole expert layer behind its norm, or
// behind its router where a graph holds that, moe_act the experts' activation, layernorm the two
// norms of a layer, shared_experts the shared expert. Full recompute drops everything between the
// inputs of layers: uniform keeps the input of every `layers` layers, block recomputes the first
// `layers` layers one by one and keeps the others; both count within a chunk of a pipeline stage
// (Megatron-LM --recompute-granularity, --recompute-method, --recompute-num-layers,
// --recompute-modules).
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <initializer_list>
#include <string_view>
#include <vector>

namespace graphproof::workloads {

/// A stretch of a layer that is run twice. The module layernorm is two of them; `layer` is that of
/// full recompute.
enum class RecomputedPart {
  core_attn,
  mlp,
  moe,
  moe_act,
  attention_norm,
  mlp_norm,
  shared_experts,
  layer
};
inline constexpr std::array<std::string_view, 8> kRecomputedParts{
    "core_attn", "mlp", "moe", "moe_act", "attention_norm", "mlp_norm", "shared_experts", "layer"};
inline std::string_view name(RecomputedPart part) {
  return kRecomputedParts[static_cast<std::size_t>(part)];
}

struct RecomputeConfig {
  enum class Method { selective, uniform, block };
  Method method = Method::selective;
  std::vector<RecomputedPart> parts = {};  // {layer} alone with uniform and block
  std::int64_t layers = 0;                 // of uniform and block
  /// moe begins behind router and preprocessing: what is exchanged, worked and combined is run
  /// twice, and they once. (Upstream's local graphs, rules R079 and R139, replay the router's graph
  /// in the second run as well.)
  bool behind_router = false;

  bool any() const { return !parts.empty(); }
  bool full() const { return method != Method::selective; }
  bool of(RecomputedPart part) const {
    return std::find(parts.begin(), parts.end(), part) != parts.end();
  }
  /// Of a chunk with `all` layers, those at the front that are computed again, whole or in part.
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
