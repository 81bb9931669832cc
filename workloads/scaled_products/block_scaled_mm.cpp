#include "workloads/scaled_products/block_scaled_mm.h"

#include <stdexcept>
#include <string>

#include "fixtures/tensors/torch.h"

namespace graphproof::workloads {
namespace {

// at::_scaled_mm takes multiples of 16 rows alone, and Transformer Engine multiples of 32.
constexpr std::int64_t kRows = 32, kTileRows = 128, kTileColumns = 4;

/// x [R, C] of bytes with rows and columns of zeros up to multiples.
at::Tensor padded(const at::Tensor& x, std::int64_t rows, std::int64_t columns) {
  const auto missing = [](std::int64_t size, std::int64_t multiple) {
    return (multiple - size % multiple) % multiple;
  };
  return at::constant_pad_nd(x, {0, missing(x.size(1), columns), 0, missing(x.size(0), rows)})
      .contiguous();
}

void require_same(const char* what, const std::string& a, const std::string& b) {
  if (a == b) return;
  throw std::invalid_argument(std::string("block-scaled product: got ") + what + " " + a + " and " +
                              b +
                              "; want the same, because the kernels multiply block by block; next: "
                              "cast both operands to one format, with blocks along the dimension "
                              "over which the product adds");
}

/// a times b^T in fp32 (nvfp4) or `type` (mxfp8) on a GPU, without the scales of the tensors.
at::Tensor on_gpu(const BlockScaled& a, const BlockScaled& b, at::ScalarType type) {
  const bool mx = a.format == BlockFormat::mxfp8;
  const auto numbers = [mx](const BlockScaled& x) {
    return mx ? padded(x.numbers, kRows, 1).view(at::kFloat8_e4m3fn)
              : padded(packed(x.numbers), kRows, 1).view(at::kFloat4_e2m1fn_x2);
  };
  const auto scales = [mx](const BlockScaled& x) {
    return swizzled(x.scales.of_block).view(mx ? at::kFloat8_e8m0fnu : at::kFloat8_e4m3fn);
  };
  return at::_scaled_mm(numbers(a), numbers(b).t(), scales(a), scales(b), /*bias=*/std::nullopt,
                        /*scale_result=*/std::nullopt, mx ? type : at::kFloat,
                        /*use_fast_accum=*/false)
      .narrow(0, 0, a.rows())
      .narrow(1, 0, b.rows());
}

}  // namespace

at::Tensor block_scaled_mm(const BlockScaled& a, const BlockScaled& b, at::ScalarType type) {
  const auto name = [](const BlockScaled& x) {
    return x.format == BlockFormat::mxfp8 ? "mxfp8" : "nvfp4";
  };
  require_same("formats", name(a), name(b));
  require_same("rows of", std::to_string(a.columns()) + " numbers",
               std::to_string(b.columns()) + " numbers");
  if (a.rows() == 0 || b.rows() == 0 || a.columns() == 0)
    return at::zeros({a.rows(), b.rows()}, a.numbers.options().dtype(type));
  at::Tensor product =
      a.numbers.is_cuda() ? on_gpu(a, b, type) : at::matmul(in_fp32(a), in_fp32(b).t());
  if (a.scales.of_tensor.defined()) product = product * (a.scales.of_tensor * b.scales.of_tensor);
  return product.to(type);
}

at::Tensor packed(const at::Tensor& numbers) {
  const at::Tensor pairs = numbers.unflatten(-1, {numbers.size(-1) / 2, 2});
  return pairs.select(-1, 0) + pairs.select(-1, 1) * 16;
}

at::Tensor swizzled(const at::Tensor& scales) {
  const at::Tensor all = padded(scales, kTileRows, kTileColumns);
  return all
      .view({all.size(0) / kTileRows, kTileRows / 32, 32, all.size(1) / kTileColumns, kTileColumns})
      .permute({0, 3, 2, 1, 4})
      .reshape({-1});
}

}  // namespace graphproof::workloads
