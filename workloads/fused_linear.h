// A linear layer whose weight gradient is added straight to the main gradient, as Megatron-LM's gradient accumulation
// fusion: autograd never sees it, so no tensor of the weight's size is handed around and nothing else may use it.
#pragma once

#include "fixtures/torch.h"
#include "workloads/delayed_gradients.h"

namespace graphproof::workloads {

/// x [N, I] times weight^T, weight [O, I] a leaf whose .grad is its fp32 main gradient. Returns [N, O].
/// Backward adds dy^T x to weight.grad() and hands out an undefined gradient, upon which the weight's accumulator runs its
/// hooks as upon any other. Plain x weight^T where `fused` is false. With `delayed` the weight gradient is left there, fused or
/// not.
at::Tensor linear_product(const at::Tensor& x, const at::Tensor& weight, bool fused, DelayedGradients* delayed = nullptr);

}  // namespace graphproof::workloads
