// A linear layer whose weight gradient is added straight to the main gradient, as Megatron-LM's
// gradient accumulation fusion: autograd never sees it, so no tensor of the weight's size is handed
// around and nothing else may use it.
#pragma once

#include "fixtures/tensors/torch.h"
#include "workloads/layers/delayed_gradients.h"

namespace graphproof::workloads {

/// x [N, I] times weight^T, weight [O, I] a leaf or its rounded copy (fp8_weights.h), main_gradient
/// [O, I] fp32 the leaf's .grad. Returns [N, O]. Backward adds dy^T x to main_gradient and hands
/// out an undefined gradient, upon which the leaf's accumulator runs its hooks as upon any other.
/// Plain x weight^T where `fused` is false. With `delayed` the weight gradient is left there, fused
/// or not.
at::Tensor linear_product(const at::Tensor& x, const at::Tensor& weight,
                          const at::Tensor& main_gradient, bool fused,
                          DelayedGradients* delayed = nullptr);

}  // namespace graphproof::workloads
