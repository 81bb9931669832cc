// Numbers of 8 and 4 bits with a scale for each block of neighbours, as Transformer Engine's
// recipes MXFP8BlockScaling and NVFP4BlockScaling make them. A scale is found when its block is
// cast, so nothing is kept from one step to the next.
//
// mxfp8 (OCP Microscaling Formats 1.0): 32 numbers in a row share a power of two (e8m0). The
// numbers are e4m3, those of gradients too. nvfp4: 16 numbers in a row, or a square of 16 by 16 of
// them, share a scale in e4m3, and a tensor has one more scale in fp32. The numbers are e2m1.
//
// A block lies along the dimension over which a product adds. The numbers of a matrix and those of
// its transpose are therefore others, and both are made from the matrix itself.
//
// Rows are padded with zeros to a multiple of kRowMultiple, which changes no scale.
//
// Letters: R rows of C numbers, C' = C rounded up to kRowMultiple, B blocks of a row, E experts.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <vector>

namespace graphproof::workloads {

/// The formats, with the names of axis precision.
enum class BlockFormat { mxfp8, nvfp4 };
/// Which numbers share a scale: neighbours in a row, or a square of them (nvfp4 only).
enum class BlockShape { row, square };

/// A multiple of both formats' blocks, and of what CUDA's kernels read at once.
inline constexpr std::int64_t kRowMultiple = 32;
/// The numbers of a block in a row, and the rows of a square.
constexpr std::int64_t block_size(BlockFormat format) {
  return format == BlockFormat::mxfp8 ? 32 : 16;
}

/// The scales of a tensor [R, C], or of E experts' tensors [E, R, C].
struct BlockScales {
  at::Tensor of_block;   // [.., R, B] bytes: e8m0, or e4m3
  at::Tensor of_tensor;  // nvfp4: [1] or [E] fp32, by what to multiply numbers; else undefined
};

/// A tensor in one of the formats. Numbers and scales are held as bytes, whose meaning the format
/// says. A number of 4 bits has a byte of its own until block_scaled_mm() packs it: no such byte is
/// more than 15, so what a replay did not write can be told from it (fixtures/inspect/poison.h).
struct BlockScaled {
  BlockFormat format = BlockFormat::mxfp8;
  at::Tensor numbers;  // [.., R, C']
  BlockScales scales;

  bool defined() const { return numbers.defined(); }
  std::int64_t rows() const { return numbers.size(-2); }
  std::int64_t columns() const { return numbers.size(-1); }  // C'
  BlockScaled of_expert(std::int64_t expert) const;
  /// All its tensors that are defined, in one order.
  std::vector<at::Tensor> tensors() const;
};

/// The scales of x [R, C] or [E, R, C] of a floating type. mxfp8: the power of two at or above a
/// 448th of the block's largest element. nvfp4: the tensor's largest element becomes 448 times 6,
/// and then a sixth of the block's largest element is rounded to e4m3. Not differentiable; enqueues
/// on the current stream and may be captured. So do the functions below.
BlockScales block_scales(const at::Tensor& x, BlockFormat format, BlockShape shape);
/// x as numbers under `scales`, each rounded to the nearest one, ties to even. A number beyond the
/// largest one becomes the largest. REQUIRES: scales of a tensor of this shape.
BlockScaled rounded_to(const at::Tensor& x, BlockFormat format, const BlockScales& scales);
/// rounded_to() with the scales of x itself.
BlockScaled block_scaled(const at::Tensor& x, BlockFormat format, BlockShape shape);

/// [.., R, C'] fp32: numbers times the scales of their blocks, without those of the tensors. Exact.
at::Tensor in_fp32(const BlockScaled& x);

/// [16, 16] fp32: the Hadamard matrix with the signs that Transformer Engine uses in each of its
/// random Hadamard transforms. Orthogonal: two operands that are both multiplied by it have the
/// product that they had before.
at::Tensor hadamard_with_signs(at::Device device);
/// x [.., R, C] with each 16 numbers of a row multiplied by `hadamard`, [.., R, C'] in the type of
/// x. An outlier is spread over its neighbours, which share its scale.
at::Tensor transformed(const at::Tensor& x, const at::Tensor& hadamard);

}  // namespace graphproof::workloads
