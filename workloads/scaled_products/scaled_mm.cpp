#include "workloads/scaled_products/scaled_mm.h"

#include <cstdint>
#include <stdexcept>
#include <string>

#include "fixtures/tensors/torch.h"

namespace graphproof::workloads {
namespace {

[[noreturn]] void refuse(const std::string& got, const std::string& want) {
  throw std::invalid_argument("product in fp8: got " + got + "; want " + want +
                              ", because CUDA's kernels refuse anything else; next: convert, copy "
                              "or pad the operand before the product");
}

std::string sizes_of(const at::Tensor& x) {
  std::string text;
  for (const std::int64_t size : x.sizes())
    text += (text.empty() ? "[" : ", ") + std::to_string(size);
  return text + "]";
}

bool aligned(const at::Tensor& x) {
  return reinterpret_cast<std::uintptr_t>(x.const_data_ptr()) % 16 == 0;
}

/// `rows` is x as a row-major matrix: a itself, or b transposed.
void require_operand(const std::string& name, const at::Tensor& rows) {
  if (rows.scalar_type() != at::kFloat8_e4m3fn && rows.scalar_type() != at::kFloat8_e5m2)
    refuse(name + " of " + c10::toString(rows.scalar_type()), "e4m3 or e5m2");
  for (const std::int64_t size : rows.sizes())
    if (size == 0 || size % 16 != 0)
      refuse(name + " with a dimension of " + std::to_string(size), "multiples of 16 above 0");
  if (!rows.is_contiguous())
    refuse(name + " with other strides", "a row-major and b column-major without gaps");
  if (!aligned(rows)) refuse(name + " at an unaligned address", "a multiple of 16 bytes");
}

void require_inverse(const std::string& name, const at::Tensor& inverse) {
  if (inverse.scalar_type() != at::kFloat || inverse.numel() != 1)
    refuse("a scale of " + name + " with " + std::to_string(inverse.numel()) + " numbers of " +
               c10::toString(inverse.scalar_type()),
           "one number in fp32");
  if (!aligned(inverse))
    refuse("the scale of " + name + " at an unaligned address", "a multiple of 16 bytes");
}

}  // namespace

at::Tensor scaled_mm(const at::Tensor& a, const at::Tensor& b, const at::Tensor& a_inverse,
                     const at::Tensor& b_inverse, at::ScalarType type) {
  if (a.dim() != 2 || b.dim() != 2 || a.size(1) != b.size(0))
    refuse("a " + sizes_of(a) + " and b " + sizes_of(b), "two matrices [M, K] and [K, N]");
  require_operand("a", a);
  require_operand("b", b.t());
  if (a.scalar_type() == at::kFloat8_e5m2 && b.scalar_type() == at::kFloat8_e5m2)
    refuse("two operands of e5m2", "e4m3 for one of them at least");
  require_inverse("a", a_inverse);
  require_inverse("b", b_inverse);
  if (type != at::kBFloat16 && type != at::kHalf && type != at::kFloat)
    refuse(std::string("a result of ") + c10::toString(type), "bf16, fp16 or fp32");
  if (a.is_cuda())
    return at::_scaled_mm(a, b, a_inverse, b_inverse, /*bias=*/std::nullopt,
                          /*scale_result=*/std::nullopt, type, /*use_fast_accum=*/false);
  return (at::matmul(a.to(at::kFloat), b.to(at::kFloat)) * (a_inverse * b_inverse)).to(type);
}

}  // namespace graphproof::workloads
