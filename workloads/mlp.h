// The feed-forward part of a layer: up, GELU, down; F inner elements, split over the T tensor parallel ranks.
#pragma once

#include <cmath>
#include <optional>
#include <string>

#include "fixtures/torch.h"
#include "workloads/linear.h"

namespace graphproof::workloads {

class Mlp {
 public:
  Mlp(Parameters& parameters, const ModelConfig& config, const Layout& layout, const std::string& name)
      : up_(parameters, layout, name + ".up", config.hidden, config.ffn, config.linear_bias),
        down_(parameters, layout, name + ".down", config.ffn, config.hidden, config.linear_bias,
              1.0 / std::sqrt(2.0 * static_cast<double>(config.layers))) {}

  /// x [N, H], the same on all T ranks. Returns [N, H], the same on all T ranks. `stray`: see RowParallelLinear.
  at::Tensor forward(const at::Tensor& x, std::optional<c10::Stream> stray) const {
    return down_.forward(at::gelu(up_.forward(x), "tanh"), stray);
  }

 private:
  ColumnParallelLinear up_;  // to [N, F/T]
  RowParallelLinear down_;
};

}  // namespace graphproof::workloads
