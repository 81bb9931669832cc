// The product of a linear layer in numbers of 8 bits, as in Transformer Engine with the format
// hybrid: inputs and weights are e4m3, gradients are e5m2, and each of the three products (the
// output, the gradient of the input and that of the weight) multiplies 8-bit numbers and adds in
// fp32. Operands are padded and copied until scaled_mm() takes them, on both devices alike. With a
// scale for each block see block_product.h.
#pragma once

#include "fixtures/tensors/torch.h"
#include "workloads/forward/activation_offload.h"
#include "workloads/layers/block_product.h"
#include "workloads/layers/delayed_gradients.h"
#include "workloads/layers/fp8_scaling.h"

namespace graphproof::workloads {

/// A weight as a product uses it. `tensor` [O, I] or [E, O, I] is differentiable in the parameter:
/// the parameter itself or its rounded copy. With products in fp8, `fp8` are its numbers, and the
/// casts are those of the product's other operands; with a scale for each block, these are `blocks`
/// and `block_casts`. Otherwise they are undefined.
struct UsedWeight {
  at::Tensor tensor;
  Fp8Tensor fp8 = {};
  Fp8Cast input = {}, gradient = {};
  BlockOperand blocks = {};
  BlockCasts block_casts = {};

  /// Whether a product with it multiplies numbers of 8 or 4 bits.
  bool is_quantized() const { return fp8.values.defined() || blocks.defined(); }
  UsedWeight of_expert(std::int64_t expert) const;
};

/// linear_product() with a weight that may have 8 or 4 bits: x times weight^T, [N, O] for x [N, I]
/// or [E, N, O] for x [E, N, I], in the type of x. A weight gradient that is added to main_gradient
/// has not been rounded. What a product in 8 or 4 bits keeps
/// stays on the device.
at::Tensor linear_product(const at::Tensor& x, const UsedWeight& weight,
                          const at::Tensor& main_gradient, bool fused,
                          DelayedGradients* delayed = nullptr,
                          ActivationOffload* offload = nullptr);

/// Returns a times b^T as numbers of `type`. a [M, K] and b [N, K], or both with a leading
/// dimension for experts; at most one of them is e5m2.
at::Tensor fp8_matmul(const Fp8Tensor& a, const Fp8Tensor& b, at::ScalarType type);

}  // namespace graphproof::workloads
