#include "workloads/layers/fp8_product.h"

#include <cstdint>
#include <vector>

#include "workloads/layers/fused_linear.h"
#include "workloads/scaled_products/scaled_mm.h"

namespace graphproof::workloads {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// scaled_mm() takes these multiples alone.
constexpr std::int64_t kMultiple = 16;

/// x [R, C] of 8-bit numbers with rows and columns of zeros up to multiples of kMultiple.
at::Tensor padded(const at::Tensor& x) {
  const auto missing = [](std::int64_t size) { return (kMultiple - size % kMultiple) % kMultiple; };
  const std::int64_t below = missing(x.size(0)), right = missing(x.size(1));
  if (below + right == 0) return x.contiguous();
  // The bytes of 0 are zero in both types; padding is not implemented for the types themselves.
  return at::constant_pad_nd(x.contiguous().view(at::kByte), {0, right, 0, below})
      .view(x.scalar_type());
}

/// The inverse of a scale where scaled_mm() reads it: the scale of the second expert lies four
/// bytes behind the first, and not at a multiple of 16.
at::Tensor aligned(const at::Tensor& inverse) {
  const bool fits = reinterpret_cast<std::uintptr_t>(inverse.const_data_ptr()) % 16 == 0;
  return fits ? inverse : inverse.clone();
}

/// a times b^T of one matrix each.
at::Tensor multiplied(const Fp8Tensor& a, const Fp8Tensor& b, at::ScalarType type) {
  const std::int64_t rows = a.values.size(0), columns = b.values.size(0);
  if (rows == 0 || a.values.size(1) == 0)
    return at::zeros({rows, columns}, a.inverse.options().dtype(type));
  return scaled_mm(padded(a.values), padded(b.values).t(), aligned(a.inverse), aligned(b.inverse),
                   type)
      .narrow(0, 0, rows)
      .narrow(1, 0, columns);
}

/// [.., R, C] to [.., C, R], contiguous as the kernels read it.
Fp8Tensor transposed(const Fp8Tensor& x) {
  return {x.values.transpose(-1, -2).contiguous(), x.inverse};
}

/// What the backward needs besides saved tensors. `main_gradient` is not a saved variable, because
/// it may be modified between forward and backward.
struct Product : torch::CustomClassHolder {
  Fp8Cast gradient;
  at::Tensor main_gradient;
  bool fused = false;
  DelayedGradients* delayed = nullptr;
};

struct Fp8Product : torch::autograd::Function<Fp8Product> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x,
                            const at::Tensor& /*weight*/, const UsedWeight& used,
                            const c10::intrusive_ptr<Product>& product) {
    const Fp8Tensor input = to_fp8(x, at::kFloat8_e4m3fn, used.input);
    context->save_for_backward({input.values, input.inverse, used.fp8.values, used.fp8.inverse});
    context->saved_data["product"] = c10::IValue::make_capsule(product);
    return fp8_matmul(input, used.fp8, x.scalar_type());
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const at::NoGradGuard no_grad;
    const variable_list saved = context->get_saved_variables();
    const auto product =
        c10::static_intrusive_pointer_cast<Product>(context->saved_data["product"].toCapsule());
    const at::Tensor& dy = gradients[0];
    const Fp8Tensor input{saved[0], saved[1]}, weight{saved[2], saved[3]},
        gradient = to_fp8(dy, at::kFloat8_e5m2, product->gradient);
    const auto of_weight = [input, gradient](at::ScalarType type) {
      return fp8_matmul(transposed(gradient), transposed(input), type);
    };
    at::Tensor dw;
    if (product->delayed)
      product->delayed->defer([of_weight] { return of_weight(at::kFloat); },
                              product->main_gradient);
    else if (product->fused)
      product->main_gradient.add_(of_weight(at::kFloat));
    else
      dw = of_weight(dy.scalar_type());
    return {fp8_matmul(gradient, transposed(weight), dy.scalar_type()), dw, at::Tensor(),
            at::Tensor()};
  }
};

}  // namespace

UsedWeight UsedWeight::of_expert(std::int64_t expert) const {
  UsedWeight used{tensor.select(0, expert)};
  if (blocks.defined()) {
    used.blocks = blocks.of_expert(expert);
    used.block_casts = block_casts;
  } else if (fp8.values.defined()) {
    used.fp8 = fp8.of_expert(expert);
    used.input = input.of_expert(expert);
    used.gradient = gradient.of_expert(expert);
  }
  return used;
}

at::Tensor linear_product(const at::Tensor& x, const UsedWeight& weight,
                          const at::Tensor& main_gradient, bool fused, DelayedGradients* delayed,
                          ActivationOffload* offload) {
  if (weight.blocks.defined())
    return block_product(x, weight.tensor, weight.blocks, weight.block_casts, main_gradient, fused,
                         delayed);
  if (!weight.fp8.values.defined())
    return linear_product(x, weight.tensor, main_gradient, fused, delayed, offload);
  auto product = c10::make_intrusive<Product>();
  product->gradient = weight.gradient;
  product->main_gradient = main_gradient;
  product->fused = fused;
  product->delayed = delayed;
  return Fp8Product::apply(x, delayed ? weight.tensor.detach() : weight.tensor, weight, product);
}

at::Tensor fp8_matmul(const Fp8Tensor& a, const Fp8Tensor& b, at::ScalarType type) {
  if (a.values.dim() == 2) return multiplied(a, b, type);
  std::vector<at::Tensor> of_experts;
  for (std::int64_t e = 0; e < a.values.size(0); ++e)
    of_experts.push_back(multiplied(a.of_expert(e), b.of_expert(e), type));
  return at::stack(of_experts);
}

}  // namespace graphproof::workloads
