// RMS normalisation (Zhang and Sennrich 2019), composed of elementwise operators and row means: those are deterministic
// on every device, which the fused kernels don't promise for the weight's gradient.
#pragma once

#include <string>

#include "fixtures/torch.h"
#include "workloads/parameters.h"

namespace graphproof::workloads {

class RmsNorm {
 public:
  // Megatron-LM's --norm-epsilon default.
  static constexpr double kEpsilon = 1e-5;

  /// Weights lie around 1 instead of on it: a norm that forgets its weight must change the result.
  RmsNorm(Parameters& parameters, const std::string& name, std::int64_t hidden)
      : weight_(parameters.create(name + ".weight", {hidden}, {}, {1.0, 0.1})) {}

  /// x [N, H]. Returns [N, H] of x's type: x / sqrt(mean(x^2) + epsilon) * weight, the mean over H; computed in fp32.
  at::Tensor forward(const at::Tensor& x) const {
    const at::Tensor wide = x.to(at::kFloat);
    const at::Tensor mean_square = at::mean(wide * wide, {1}, /*keepdim=*/true);
    return (wide * at::rsqrt(mean_square + kEpsilon) * weight_.to(at::kFloat)).to(x.scalar_type());
  }

 private:
  at::Tensor weight_;  // [H]
};

}  // namespace graphproof::workloads
