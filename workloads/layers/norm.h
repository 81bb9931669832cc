// Normalisation over the elements of a token: RMS norm (Zhang and Sennrich 2019) or layer norm (Ba
// et al. 2016). Uses PyTorch's fused kernels where a device has them, as training runs do.
// PyTorch's deterministic mode, in which ranks run, accepts both kernels; check D02 tests in every
// case that they repeat byte for byte.
#pragma once

#include <string>

#include "fixtures/tensors/torch.h"
#include "workloads/config/model_config.h"
#include "workloads/config/precision.h"
#include "workloads/layers/linear.h"
#include "workloads/parameters/parameters.h"

namespace graphproof::workloads {

/// One norm with its parameters, over H elements.
class Norm {
 public:
  /// The default of Megatron-LM's --norm-epsilon.
  static constexpr double kEpsilon = 1e-5;

  /// Weights are drawn around 1, so that a norm that ignores its weight changes the result. Only a
  /// layer norm has a bias. H is the model's hidden size, or `elements`.
  Norm(Parameters& parameters, const ModelConfig& config, const Layout& layout,
       const std::string& name)
      : Norm(parameters, config, layout, name, config.hidden) {}
  Norm(Parameters& parameters, const ModelConfig& config, const Layout& layout,
       const std::string& name, std::int64_t elements)
      : weight_(parameters.create(name + ".weight", {elements}, whole(layout), {1.0, 0.1})) {
    if (config.normalization == Normalization::LayerNorm)
      bias_ = parameters.create(name + ".bias", {elements}, whole(layout), kBiasDistribution);
  }

  /// x [any, H]. Returns [any, H] of the type of x, computed in fp32. Means are over H:
  ///   RMSNorm    x / sqrt(mean(x^2) + epsilon) * weight
  ///   LayerNorm  c / sqrt(mean(c^2) + epsilon) * weight + bias with c = x - mean(x)
  at::Tensor forward(const at::Tensor& x) const {
    const at::Tensor input = wide(x), weight = wide(weight_);
    const at::Tensor normalized =
        bias_.defined() ? at::layer_norm(input, weight.sizes(), weight, wide(bias_), kEpsilon)
                        : at::rms_norm(input, weight.sizes(), weight, kEpsilon);
    return normalized.to(x.scalar_type());
  }

 private:
  at::Tensor weight_, bias_;  // [H]; no bias with RMSNorm
};

}  // namespace graphproof::workloads
