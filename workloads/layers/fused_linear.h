// A linear layer whose backward adds the weight gradient directly to the main gradient, as in
// Megatron-LM's gradient accumulation fusion. Autograd does not see this gradient, so there is no
// temporary tensor of the weight's size, and no hook can read the gradient.
#pragma once

#include "fixtures/tensors/torch.h"
#include "workloads/forward/activation_offload.h"
#include "workloads/layers/delayed_gradients.h"

namespace graphproof::workloads {

/// Returns x times weight^T, [N, O]. x [N, I]; weight [O, I] is a leaf or its rounded copy
/// (fp8_weights.h); main_gradient [O, I] fp32 is the .grad of the leaf. With `fused` the backward
/// adds dy^T x to main_gradient and returns an undefined gradient, for which the accumulator of the
/// leaf runs its hooks as for any other. Without `fused` it is autograd's own product. With
/// `delayed` the weight gradient is deferred to it, with or without `fused`. In an autocast region
/// the operands are cast first (autocast.h). With `offload`, which excludes the other two, `x` is
/// kept in host memory for the backward.
at::Tensor linear_product(const at::Tensor& x, const at::Tensor& weight,
                          const at::Tensor& main_gradient, bool fused,
                          DelayedGradients* delayed = nullptr,
                          ActivationOffload* offload = nullptr);

}  // namespace graphproof::workloads
