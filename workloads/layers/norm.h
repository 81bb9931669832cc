// Normalisation over the hidden elements: RMS (Zhang and Sennrich 2019) or layer norm (Ba et al.
// 2016). PyTorch's fused kernels where a device has them, as in the runs that users train.
// PyTorch's deterministic mode, in which ranks run, refuses neither, and whether they repeat byte
// for byte is what D02 asks in every case.
#pragma once

#include <string>

#include "fixtures/tensors/torch.h"
#include "workloads/config/model_config.h"
#include "workloads/layers/linear.h"
#include "workloads/parameters/parameters.h"

namespace graphproof::workloads {

class Norm {
 public:
  // Megatron-LM's --norm-epsilon default.
  static constexpr double kEpsilon = 1e-5;

  /// Weights lie around 1 instead of on it: a norm that forgets its weight must change the result.
  /// A bias has the layer norm alone.
  Norm(Parameters& parameters, const ModelConfig& config, const Layout& layout,
       const std::string& name)
      : weight_(parameters.create(name + ".weight", {config.hidden}, whole(layout), {1.0, 0.1})) {
    if (config.normalization == Normalization::LayerNorm)
      bias_ = parameters.create(name + ".bias", {config.hidden}, whole(layout), kBiasDistribution);
  }

  /// x [any, H]. Returns [any, H] of x's type, computed in fp32; means over H:
  ///   RMSNorm    x / sqrt(mean(x^2) + epsilon) * weight
  ///   LayerNorm  c / sqrt(mean(c^2) + epsilon) * weight + bias with c = x - mean(x)
  at::Tensor forward(const at::Tensor& x) const {
    const at::Tensor wide = x.to(at::kFloat), weight = weight_.to(at::kFloat);
    const at::Tensor normalized =
        bias_.defined()
            ? at::layer_norm(wide, weight.sizes(), weight, bias_.to(at::kFloat), kEpsilon)
            : at::rms_norm(wide, weight.sizes(), weight, kEpsilon);
    return normalized.to(x.scalar_type());
  }

 private:
  at::Tensor weight_, bias_;  // [H]; no bias with RMSNorm
};

}  // namespace graphproof::workloads
