#include "workloads/scaled_products/block_scaled_mm.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "fixtures/tensors/torch.h"
#include "workloads/testing/blocks_by_hand.h"
#include "workloads/testing/refusal.h"

namespace graphproof::workloads::block_scaled_mm_test {
namespace {

at::Tensor numbers(std::vector<std::int64_t> sizes, double first) {
  std::int64_t count = 1;
  for (const std::int64_t size : sizes) count *= size;
  return (at::sin(at::arange(count, at::kFloat) * 1.7 + first) * first).view(sizes);
}
BlockScaled scaled(const at::Tensor& x, BlockFormat format) {
  return block_scaled(x, format, BlockShape::row);
}

// The bound: 80 products, each added with a rounding of fp32.
TEST(BlockScaledMm, IsTheProductOfWhatTheNumbersStandFor) {
  const at::Tensor a = numbers({6, 80}, 3), b = numbers({5, 80}, 0.02);
  for (const bool nvfp4 : {false, true}) {
    const BlockFormat format = nvfp4 ? BlockFormat::nvfp4 : BlockFormat::mxfp8;
    const at::Tensor want = at::mm(blocks_by_hand(a, nvfp4), blocks_by_hand(b, nvfp4).t()),
                     got = block_scaled_mm(scaled(a, format), scaled(b, format), at::kFloat);
    EXPECT_LE((got.to(at::kDouble) - want).abs().max().item<double>(),
              80 * 6e-8 * want.abs().max().item<double>());
    EXPECT_TRUE(at::equal(block_scaled_mm(scaled(a, format), scaled(b, format), at::kBFloat16),
                          got.to(at::kBFloat16)));
  }
}

TEST(BlockScaledMm, OfNoRowsIsEmptyAndOfNoColumnsIsZero) {
  for (const BlockFormat format : {BlockFormat::mxfp8, BlockFormat::nvfp4}) {
    const BlockScaled none = scaled(at::zeros({0, 32}), format),
                      some = scaled(at::ones({3, 32}), format),
                      narrow = scaled(at::zeros({3, 0}), format);
    EXPECT_EQ(block_scaled_mm(none, some, at::kFloat).sizes(), (at::IntArrayRef{0, 3}));
    EXPECT_TRUE(at::equal(block_scaled_mm(narrow, narrow, at::kFloat), at::zeros({3, 3})));
  }
}

TEST(BlockScaledMm, RefusesOperandsOfTwoFormatsOrLengths) {
  const BlockScaled a = scaled(at::ones({3, 32}), BlockFormat::mxfp8),
                    wide = scaled(at::ones({3, 33}), BlockFormat::mxfp8),
                    four_bits = scaled(at::ones({3, 32}), BlockFormat::nvfp4);
  const auto refused = [&](const BlockScaled& b) {
    return engines::refusal<std::invalid_argument>(
        [&] { return block_scaled_mm(a, b, at::kFloat); });
  };
  EXPECT_NE(refused(four_bits).find("got formats mxfp8 and nvfp4; want the same"),
            std::string::npos)
      << refused(four_bits);
  EXPECT_NE(refused(wide).find("got rows of 32 numbers and 64 numbers"), std::string::npos)
      << refused(wide);
}

TEST(BlockScaledMm, TwoNumbersOfFourBitsShareAByte) {
  const at::Tensor numbers = at::tensor({7, 1, 4, 6, 12, 8, 2, 5}).to(at::kByte).view({2, 4});
  EXPECT_TRUE(
      at::equal(packed(numbers), at::tensor({0x17, 0x64, 0x8c, 0x52}).to(at::kByte).view({2, 2})));
}

// The formula of cuBLAS's documentation, with the place of a scale in its tile of 128 by 4.
TEST(BlockScaledMm, ScalesLieInTilesAsTheKernelsReadThem) {
  const std::int64_t rows = 150, columns = 7;
  const at::Tensor scales =
      (at::arange(rows * columns) % 251 + 1).to(at::kByte).view({rows, columns});
  const at::Tensor got = swizzled(scales);
  ASSERT_EQ(got.sizes(), (at::IntArrayRef{256 * 8}));
  std::int64_t found = 0;
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t c = 0; c < columns; ++c) {
      const std::int64_t tile = r / 128 * 2 + c / 4, place = r % 32 * 16 + r % 128 / 32 * 4 + c % 4;
      EXPECT_EQ(got[tile * 512 + place].item<int>(), scales[r][c].item<int>()) << r << " " << c;
      ++found;
    }
  EXPECT_EQ(got.ne(0).sum().item<std::int64_t>(), found) << "the others are padding";
}

}  // namespace
}  // namespace graphproof::workloads::block_scaled_mm_test
