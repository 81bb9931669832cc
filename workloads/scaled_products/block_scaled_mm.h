// The product of two matrices whose blocks have scales (block_scaling.h), on both devices. On a GPU
// it is the block-scaled form of at::_scaled_mm, which needs the architecture sm_100. The simulated
// device computes the same by value: numbers times their scales are exact in fp32, and it
// multiplies those.
#pragma once

#include <ATen/ATen.h>

#include "workloads/scaled_products/block_scaling.h"

namespace graphproof::workloads {

/// Returns a times b^T [M, N] as numbers of `type`, which is bf16, fp16 or fp32. a [M, K] and
/// b [N, K] have one format; both may have no rows. Products are added in fp32. Throws
/// std::invalid_argument where formats or sizes differ. Enqueues on the current stream and may be
/// captured.
at::Tensor block_scaled_mm(const BlockScaled& a, const BlockScaled& b, at::ScalarType type);

/// Numbers of 4 bits [R, C'] as the kernels read them, [R, C'/2]: two share a byte, the first of
/// them in the lower half.
at::Tensor packed(const at::Tensor& numbers);

/// Scales [R, B] in the order in which the kernels read them: tiles of 128 rows and 4 columns, one
/// after another, and in a tile 32 groups of 16 bytes, which have 4 columns of 4 rows that are 32
/// apart. R and B are padded with zeros to 128 and 4. Source: "1D Block Scaling Factors Layout" in
/// the documentation of cuBLAS.
at::Tensor swizzled(const at::Tensor& scales);

}  // namespace graphproof::workloads
