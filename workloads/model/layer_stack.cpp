#include "workloads/model/layer_stack.h"

#include <algorithm>
#include <cstdint>

#include "workloads/forward/recompute.h"
#include "workloads/layers/fp8_weights.h"

namespace graphproof::workloads {

at::Tensor run_layers(const std::vector<Layer>& layers, at::Tensor x, const ForwardPass& pass,
                      const RecomputeConfig& config) {
  const auto all = static_cast<std::int64_t>(layers.size());
  const std::int64_t recomputed = config.full() ? config.recomputed_layers(all) : 0;
  const std::int64_t group = config.method == RecomputeConfig::Method::uniform ? config.layers : 1;
  for (std::int64_t begin = 0; begin < recomputed; begin += group) {
    const std::int64_t end = std::min(begin + group, recomputed);
    std::vector<at::Tensor> parameters;
    for (std::int64_t l = begin; l < end; ++l)
      parameters.insert(parameters.end(), layers[l].parameters().begin(),
                        layers[l].parameters().end());
    x = recompute(
        RecomputedPart::layer, pass.faults,
        [&layers, pass = with_kept_scales(pass), begin, end](const std::vector<at::Tensor>& inputs,
                                                             bool again) {
          ForwardPass run = pass;
          run.again = again;
          at::Tensor y = inputs[0];
          for (std::int64_t l = begin; l < end; ++l) {
            y = layers[l].forward(y, run);
            pass.recomputes.note(RecomputedPart::layer, layers[l].index(), y, again);
          }
          return y;
        },
        {x}, parameters);
  }
  for (std::int64_t l = recomputed; l < all; ++l) x = layers[l].forward(x, pass);
  return x;
}

}  // namespace graphproof::workloads
