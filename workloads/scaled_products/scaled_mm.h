// at::_scaled_mm on both devices. CUDA's kernels take less than any matrix product does, so the
// simulated device refuses the same operands by the same rules: a product that passes there does
// not end in CUBLAS_STATUS_NOT_SUPPORTED on a GPU. It computes the same by value: it converts the
// 8-bit numbers to fp32, which is exact, and multiplies those.
#pragma once

#include <ATen/ATen.h>

namespace graphproof::workloads {

/// Returns a times b [M, N] as numbers of `type`, which is bf16, fp16 or fp32. a [M, K] is
/// row-major and b [K, N] column-major, both without gaps between rows or columns, of e4m3 or e5m2
/// and not both of e5m2. M, N and K are multiples of 16 above 0. a_inverse and b_inverse [1] fp32
/// are what to multiply the numbers by. All four addresses are multiples of 16 bytes. There is no
/// bias, and products are added in fp32 throughout (no fast accumulation). Throws
/// std::invalid_argument where one of these does not hold. Enqueues on the current stream and may
/// be captured. Source: _check_scaled_mm_sizes of PyTorch 2.11 (torch/_meta_registrations.py), the
/// types of cublasLtMatmul in cuBLAS's documentation, and an H100, which also refused an a with 8
/// rows and a scale at an unaligned address.
at::Tensor scaled_mm(const at::Tensor& a, const at::Tensor& b, const at::Tensor& a_inverse,
                     const at::Tensor& b_inverse, at::ScalarType type);

}  // namespace graphproof::workloads
