// The product of a linear layer in numbers with a scale for each block (block_scaling.h), as in
// Transformer Engine with its recipes MXFP8BlockScaling and NVFP4BlockScaling. Each operand is cast
// twice from its own elements: with blocks along its rows, and with blocks along its columns for
// the product that adds over them. The output uses rows of inputs and of weights, the gradient of
// the input rows of gradients and columns of weights, and that of the weight columns of both.
//
// With nvfp4 a square of a weight has one scale, so both of its casts have the same numbers, and
// columns of inputs and gradients go through a random Hadamard transform, which the product for the
// weight undoes. Transformer Engine also rounds gradients of nvfp4 to one of two neighbours at
// random. That is left out: every number here is rounded to the nearest one, as Transformer Engine
// does with NVTE_NVFP4_DISABLE_STOCHASTIC_ROUNDING=1. Random numbers would be drawn in the
// backward, also by autograd's own thread, where this suite registers no generator with a graph.
// Operands that tensor parallel ranks gather are gathered in 16 bits and cast afterwards, so no
// scale has to be found together with other ranks.
//
// A block that a size does not fill is filled with zeros, which change no scale; products with a
// scale for each tensor are padded too (fp8_product.h). Transformer Engine takes no size with a
// remainder. Here every layout, captured module and kind of layer runs with the small sizes of this
// suite, whose parts of a weight, latents and tokens of an expert have remainders that those of the
// models they stand for have not. Megatron-LM pads the tokens of an expert in the same way
// (--moe-router-padding-for-quantization).
#pragma once

#include "fixtures/tensors/torch.h"
#include "workloads/faults/hooks/fault_hooks.h"
#include "workloads/layers/delayed_gradients.h"
#include "workloads/scaled_products/block_scaling.h"

namespace graphproof::workloads {

/// An operand [.., R, C] with blocks along its rows, and its transpose [.., C, R] with blocks along
/// what are then rows.
struct BlockOperand {
  BlockScaled rows, columns;

  bool defined() const { return rows.defined(); }
  BlockOperand of_expert(std::int64_t expert) const;
  /// Those of rows, then those of columns.
  std::vector<at::Tensor> tensors() const;
};

/// How the operands of the products with one weight are cast. `hadamard`: see
/// hadamard_with_signs(); undefined with mxfp8. `faults` outlives it.
struct BlockCasts {
  enum class Operand { input, weight, gradient };

  BlockFormat format = BlockFormat::mxfp8;
  at::Tensor hadamard;
  at::Tensor parameter;  // the weight, by which a fault tells casts apart
  faults::FaultHooks* faults = nullptr;

  /// x [R, C] or [E, R, C]. Not differentiable; may be captured.
  BlockOperand cast(const at::Tensor& x, Operand operand) const;
};

/// linear_product() (fp8_product.h) with a weight whose numbers are `weight`: x times weight^T in
/// the type of x. `tensor` is the weight in 16 bits, to which the gradient goes.
at::Tensor block_product(const at::Tensor& x, const at::Tensor& tensor, const BlockOperand& weight,
                         const BlockCasts& casts, const at::Tensor& main_gradient, bool fused,
                         DelayedGradients* delayed);

}  // namespace graphproof::workloads
