// Normalisation over the hidden elements: RMS (Zhang and Sennrich 2019) or layer norm (Ba et al. 2016), composed of
// elementwise operators and row means: those are deterministic on every device, which the fused kernels don't promise for
// the weight's gradient.
#pragma once

#include <string>

#include "fixtures/torch.h"
#include "workloads/linear.h"
#include "workloads/model_config.h"
#include "workloads/parameters.h"

namespace graphproof::workloads {

class Norm {
 public:
  // Megatron-LM's --norm-epsilon default.
  static constexpr double kEpsilon = 1e-5;

  /// Weights lie around 1 instead of on it: a norm that forgets its weight must change the result. A bias has the layer
  /// norm alone.
  Norm(Parameters& parameters, const ModelConfig& config, const Layout& layout, const std::string& name)
      : weight_(parameters.create(name + ".weight", {config.hidden}, whole(layout), {1.0, 0.1})) {
    if (config.normalization == Normalization::LayerNorm)
      bias_ = parameters.create(name + ".bias", {config.hidden}, whole(layout), kBiasDistribution);
  }

  /// x [any, H]. Returns [any, H] of x's type, computed in fp32; means over H:
  ///   RMSNorm    x / sqrt(mean(x^2) + epsilon) * weight
  ///   LayerNorm  c / sqrt(mean(c^2) + epsilon) * weight + bias with c = x - mean(x)
  at::Tensor forward(const at::Tensor& x) const {
    at::Tensor wide = x.to(at::kFloat);
    if (bias_.defined()) wide = wide - at::mean(wide, {1}, /*keepdim=*/true);
    const at::Tensor mean_square = at::mean(wide * wide, {1}, /*keepdim=*/true);
    at::Tensor scaled = wide * at::rsqrt(mean_square + kEpsilon) * weight_.to(at::kFloat);
    if (bias_.defined()) scaled = scaled + bias_.to(at::kFloat);
    return scaled.to(x.scalar_type());
  }

 private:
  at::Tensor weight_, bias_;  // [H]; no bias with RMSNorm
};

}  // namespace graphproof::workloads
