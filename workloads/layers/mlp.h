// The feed-forward part of a layer: a linear layer up, the activation, a linear layer down. The F
// inner elements are split over the T tensor parallel ranks.
#pragma once

#include <cmath>
#include <string>

#include "fixtures/tensors/torch.h"
#include "workloads/layers/activation.h"
#include "workloads/layers/linear.h"

namespace graphproof::workloads {

/// N tokens, P parts of a sequence (tensor_parallel.h), H hidden elements.
class Mlp {
 public:
  Mlp(Parameters& parameters, const ModelConfig& config, const Layout& layout,
      const std::string& name, DelayedGradients* delayed = nullptr)
      : activation_(config.activation),
        up_(parameters, layout, name + ".up", config.hidden,
            config.ffn * rows_of_element(config.activation), config.linear_bias,
            config.grad_accumulation_fusion, delayed),
        down_(parameters, layout, name + ".down", config.ffn, config.hidden, config.linear_bias,
              1.0 / std::sqrt(2.0 * static_cast<double>(config.layers)),
              config.grad_accumulation_fusion, delayed) {}

  /// x [N/P, H] outside the tensor parallel region. Returns the same shape, also outside it.
  at::Tensor forward(const at::Tensor& x, const ForwardPass& pass) const {
    return down_.forward(activate(up_.forward(x, pass), activation_), pass);
  }

 private:
  Activation activation_;
  ColumnParallelLinear up_;  // to [N, F/T], or pairs [N, 2*F/T]
  RowParallelLinear down_;
};

}  // namespace graphproof::workloads
