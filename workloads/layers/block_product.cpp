#include "workloads/layers/block_product.h"

#include <vector>

#include "workloads/scaled_products/block_scaled_mm.h"

namespace graphproof::workloads {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// a times b^T of one matrix each, or of each expert's.
at::Tensor products_of_blocks(const BlockScaled& a, const BlockScaled& b, at::ScalarType type) {
  if (a.numbers.dim() == 2) return block_scaled_mm(a, b, type);
  std::vector<at::Tensor> of_experts;
  for (std::int64_t e = 0; e < a.numbers.size(0); ++e)
    of_experts.push_back(block_scaled_mm(a.of_expert(e), b.of_expert(e), type));
  return at::stack(of_experts);
}

variable_list as_variable_list(const BlockScaled& x) {
  return {x.numbers, x.scales.of_block, x.scales.of_tensor};
}
BlockScaled from_variable_list(BlockFormat format, const variable_list& saved, std::size_t first) {
  return {format, saved[first], {saved[first + 1], saved[first + 2]}};
}

/// What the backward needs besides saved tensors. `main_gradient` is not a saved variable, because
/// it may be modified between forward and backward.
struct BlockState : torch::CustomClassHolder {
  BlockCasts casts;
  at::Tensor main_gradient;
  bool fused = false;
  DelayedGradients* delayed = nullptr;
};

struct BlockProduct : torch::autograd::Function<BlockProduct> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x,
                            const at::Tensor& /*tensor*/, const BlockOperand& weight,
                            const c10::intrusive_ptr<BlockState>& product) {
    const BlockOperand input = product->casts.cast(x, BlockCasts::Operand::input);
    variable_list kept = as_variable_list(input.columns);
    for (const at::Tensor& one : as_variable_list(weight.columns)) kept.push_back(one);
    context->save_for_backward(kept);
    context->saved_data["product"] = c10::IValue::make_capsule(product);
    return products_of_blocks(input.rows, weight.rows, x.scalar_type());
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const at::NoGradGuard no_grad;
    const variable_list kept = context->get_saved_variables();
    const auto product =
        c10::static_intrusive_pointer_cast<BlockState>(context->saved_data["product"].toCapsule());
    const at::Tensor& dy = gradients[0];
    const BlockCasts& casts = product->casts;
    const BlockScaled input = from_variable_list(casts.format, kept, 0),
                      weight = from_variable_list(casts.format, kept, 3);
    const BlockOperand gradient = casts.cast(dy, BlockCasts::Operand::gradient);
    const auto of_weight = [input, gradient](at::ScalarType type) {
      return products_of_blocks(gradient.columns, input, type);
    };
    at::Tensor dw;
    if (product->delayed)
      product->delayed->defer([of_weight] { return of_weight(at::kFloat); },
                              product->main_gradient);
    else if (product->fused)
      product->main_gradient.add_(of_weight(at::kFloat));
    else
      dw = of_weight(dy.scalar_type());
    return {products_of_blocks(gradient.rows, weight, dy.scalar_type()), dw, at::Tensor(),
            at::Tensor()};
  }
};

}  // namespace

BlockOperand BlockOperand::of_expert(std::int64_t expert) const {
  return {rows.of_expert(expert), columns.of_expert(expert)};
}

std::vector<at::Tensor> BlockOperand::tensors() const {
  std::vector<at::Tensor> tensors = rows.tensors();
  for (const at::Tensor& one : columns.tensors()) tensors.push_back(one);
  return tensors;
}

BlockOperand BlockCasts::cast(const at::Tensor& x, Operand operand) const {
  const at::NoGradGuard no_grad;
  const bool of_weight = operand == Operand::weight;
  const BlockShape shape =
      of_weight && format == BlockFormat::nvfp4 ? BlockShape::square : BlockShape::row;
  const auto scaled = [&](const at::Tensor& rows, bool transposed) {
    BlockScales scales = block_scales(rows, format, shape);
    faults->block_scales({.weight = parameter.unsafeGetTensorImpl(),
                          .operand = static_cast<int>(operand),
                          .transposed = transposed},
                         scales.of_block, scales.of_tensor);
    return rounded_to(rows, format, scales);
  };
  BlockOperand cast{.rows = scaled(x, false), .columns = {}};
  at::Tensor columns = x;
  faults->before_column_cast(columns, [&] {
    at::Tensor numbers = in_fp32(cast.rows);
    if (cast.rows.scales.of_tensor.defined()) numbers = numbers * cast.rows.scales.of_tensor;
    return numbers.narrow(-1, 0, x.size(-1)).to(x.scalar_type());
  });
  columns = columns.transpose(-1, -2);
  cast.columns =
      scaled(hadamard.defined() && !of_weight ? transformed(columns, hadamard) : columns, true);
  return cast;
}

at::Tensor block_product(const at::Tensor& x, const at::Tensor& tensor, const BlockOperand& weight,
                         const BlockCasts& casts, const at::Tensor& main_gradient, bool fused,
                         DelayedGradients* delayed) {
  auto product = c10::make_intrusive<BlockState>();
  product->casts = casts;
  product->main_gradient = main_gradient;
  product->fused = fused;
  product->delayed = delayed;
  return BlockProduct::apply(x, delayed ? tensor.detach() : tensor, weight, product);
}

}  // namespace graphproof::workloads
