#include "workloads/scaled_products/block_scaling.h"

#include <array>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "fixtures/tensors/torch.h"

namespace graphproof::workloads {
namespace {

constexpr double kLargestE4m3 = 448, kLargestE2m1 = 6;
constexpr double kLargestFloat = std::numeric_limits<float>::max();
constexpr int kMantissaBits = 23, kLargestExponent = 254;  // of fp32

std::int64_t missing(std::int64_t size, std::int64_t multiple) {
  return (multiple - size % multiple) % multiple;
}

/// x in fp32 with columns of zeros up to kRowMultiple, and rows of zeros up to `rows`, row-major
/// also if x is the transpose of another tensor.
at::Tensor padded(const at::Tensor& x, std::int64_t rows) {
  return at::constant_pad_nd(x.to(at::kFloat).contiguous(),
                             {0, missing(x.size(-1), kRowMultiple), 0, missing(x.size(-2), rows)});
}

/// x [.., R, C'] as [.., R, B, block].
at::Tensor in_blocks(const at::Tensor& x, std::int64_t block) {
  return x.unflatten(-1, {x.size(-1) / block, block});
}

/// The largest element of each block, for every row: [.., R, B] fp32.
at::Tensor largest_of_blocks(const at::Tensor& x, BlockFormat format, BlockShape shape) {
  const std::int64_t block = block_size(format);
  if (shape == BlockShape::row) return in_blocks(padded(x, 1), block).abs().amax(-1);
  const at::Tensor all = in_blocks(padded(x, block), block);
  const at::Tensor squares = all.unflatten(-3, {all.size(-3) / block, block});
  const at::Tensor largest = squares.abs().amax({-3, -1}, /*keepdim=*/true).squeeze(-1);
  std::vector<std::int64_t> sizes = largest.sizes().vec();
  sizes[sizes.size() - 2] = block;
  return largest.expand(sizes).flatten(-3, -2).narrow(-2, 0, x.size(-2));
}

/// The exponents of the least powers of two at or above `value` [..] fp32, as bytes of e8m0.
/// Source: float_to_e8m0() in Transformer Engine's ptx.cuh, which is what its kernels do on GPUs
/// that have no instruction for it.
at::Tensor to_e8m0(const at::Tensor& value) {
  const at::Tensor bits = value.contiguous().view(at::kInt);
  const at::Tensor exponent = bits.bitwise_right_shift(kMantissaBits),
                   mantissa = bits.bitwise_and((1 << kMantissaBits) - 1);
  // 2^-127, the least number of e8m0, has the exponent 0 and half of the mantissa in fp32.
  const at::Tensor up =
      mantissa.gt(0)
          .logical_and(exponent.ne(kLargestExponent))
          .logical_and(
              exponent.eq(0).logical_and(mantissa.le(1 << (kMantissaBits - 1))).logical_not());
  return (exponent + up)
      .masked_fill(value.isinf(), kLargestExponent)
      .masked_fill(value.isnan(), kLargestExponent + 1)
      .to(at::kByte);
}

/// By what to multiply the elements of a block before they are rounded: [.., R, B] fp32.
at::Tensor factors(BlockFormat format, const BlockScales& scales) {
  if (format == BlockFormat::mxfp8) {
    const at::Tensor exponent = scales.of_block.to(at::kInt);
    // A block of zeros, or of numbers that are zero in e4m3 anyhow, has the exponent 0.
    return (kLargestExponent - exponent)
        .bitwise_left_shift(kMantissaBits)
        .view(at::kFloat)
        .masked_fill(exponent.eq(0), 1);
  }
  at::Tensor of_tensor = scales.of_tensor;
  if (scales.of_block.dim() == 3) of_tensor = of_tensor.view({-1, 1, 1});
  const at::Tensor of_block = scales.of_block.view(at::kFloat8_e4m3fn).to(at::kFloat);
  return (of_block * of_tensor).reciprocal().clamp_max(kLargestFloat);
}

/// x in -6 .. 6 as e2m1, one number in a byte: a sign, and the place of the value among 0, 0.5, 1,
/// 1.5, 2, 3, 4 and 6. Of two values at the same distance it takes the one at an even place.
at::Tensor to_e2m1(const at::Tensor& x) {
  const at::Tensor size = x.abs();
  const at::Tensor place = size.gt(0.25).to(at::kByte) + size.ge(0.75) + size.gt(1.25) +
                           size.ge(1.75) + size.gt(2.5) + size.ge(3.5) + size.gt(5);
  return place + x.lt(0).to(at::kByte) * 8;
}

at::Tensor from_e2m1(const at::Tensor& number) {
  const at::Tensor place = number.bitwise_and(7).to(at::kFloat);
  const at::Tensor size =
      at::where(place.lt(4), place * 0.5, at::where(place.lt(6), place - 2, place * 2 - 8));
  return at::where(number.ge(8), -size, size);
}

}  // namespace

BlockScaled BlockScaled::of_expert(std::int64_t expert) const {
  return {format,
          numbers.select(0, expert),
          {scales.of_block.select(0, expert),
           scales.of_tensor.defined() ? scales.of_tensor.narrow(0, expert, 1) : at::Tensor()}};
}

std::vector<at::Tensor> BlockScaled::tensors() const {
  if (!scales.of_tensor.defined()) return {numbers, scales.of_block};
  return {numbers, scales.of_block, scales.of_tensor};
}

BlockScales block_scales(const at::Tensor& x, BlockFormat format, BlockShape shape) {
  const at::NoGradGuard no_grad;
  if (format == BlockFormat::mxfp8 && shape == BlockShape::square)
    throw std::logic_error("mxfp8 has no squares of numbers with one scale");
  const at::Tensor largest = largest_of_blocks(x, format, shape);
  if (format == BlockFormat::mxfp8) return {to_e8m0(largest * (1 / kLargestE4m3)), {}};
  const bool experts = x.dim() == 3;
  // An expert without tokens has no largest element.
  const at::Tensor all = x.numel() == 0 ? at::zeros({experts ? x.size(0) : 1}, largest.options())
                         : experts      ? largest.amax({1, 2})
                                        : largest.amax().view({1});
  // A division: the quotient of a number and a tensor would be a product with the reciprocal.
  at::Tensor encode =
      at::full_like(all, kLargestE4m3 * kLargestE2m1).div(all).clamp_max(kLargestFloat);
  encode = encode.masked_fill(all.eq(0).logical_or(all.isinf()), 1);
  const at::Tensor factor = encode * (1 / kLargestE2m1);
  const at::Tensor of_block = (largest * (experts ? factor.view({-1, 1, 1}) : factor))
                                  .clamp_max(kLargestE4m3)
                                  .to(at::kFloat8_e4m3fn);
  return {of_block.view(at::kByte), encode.reciprocal()};
}

BlockScaled rounded_to(const at::Tensor& x, BlockFormat format, const BlockScales& scales) {
  const at::NoGradGuard no_grad;
  const at::Tensor scaled =
      (in_blocks(padded(x, 1), block_size(format)) * factors(format, scales).unsqueeze(-1))
          .flatten(-2);
  if (format == BlockFormat::mxfp8)
    return {format,
            scaled.clamp(-kLargestE4m3, kLargestE4m3).to(at::kFloat8_e4m3fn).view(at::kByte),
            scales};
  return {format, to_e2m1(scaled), scales};
}

BlockScaled block_scaled(const at::Tensor& x, BlockFormat format, BlockShape shape) {
  return rounded_to(x, format, block_scales(x, format, shape));
}

at::Tensor in_fp32(const BlockScaled& x) {
  const bool mx = x.format == BlockFormat::mxfp8;
  const at::Tensor numbers =
      mx ? x.numbers.view(at::kFloat8_e4m3fn).to(at::kFloat) : from_e2m1(x.numbers);
  const at::Tensor scales =
      x.scales.of_block.view(mx ? at::kFloat8_e8m0fnu : at::kFloat8_e4m3fn).to(at::kFloat);
  return (in_blocks(numbers, block_size(x.format)) * scales.unsqueeze(-1)).flatten(-2);
}

at::Tensor hadamard_with_signs(at::Device device) {
  // Source: get_wgrad_sign_vector() in Transformer Engine's custom_recipes/quantization_nvfp4.py.
  constexpr std::array<float, 16> kSigns{1, 1, 1, -1, 1, -1, -1, -1, -1, -1, -1, 1, -1, 1, -1, -1};
  at::Tensor matrix = at::ones({1, 1}, at::kFloat);
  while (matrix.size(0) < 16)
    matrix = at::cat({at::cat({matrix, matrix}, 1), at::cat({matrix, -matrix}, 1)});
  const at::Tensor signs = at::tensor(at::ArrayRef<float>(kSigns), at::kFloat).unsqueeze(1);
  return (signs * matrix / 4).to(device);
}

at::Tensor transformed(const at::Tensor& x, const at::Tensor& hadamard) {
  const at::NoGradGuard no_grad;
  return at::matmul(in_blocks(padded(x, 1), 16), hadamard).flatten(-2).to(x.scalar_type());
}

}  // namespace graphproof::workloads
