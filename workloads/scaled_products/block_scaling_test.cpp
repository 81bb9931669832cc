#include "workloads/scaled_products/block_scaling.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "fixtures/tensors/torch.h"
#include "workloads/testing/blocks_by_hand.h"

namespace graphproof::workloads::block_scaling_test {
namespace {

/// Numbers of very different sizes, the same in every run.
at::Tensor numbers(std::vector<std::int64_t> sizes) {
  std::int64_t count = 1;
  for (const std::int64_t size : sizes) count *= size;
  const at::Tensor place = at::arange(count, at::kFloat);
  return (at::sin(place * 1.7) * at::exp(at::sin(place * 0.37) * 6)).view(sizes);
}

/// A row whose first elements are `first`, and whose others are 0.
at::Tensor row(std::vector<float> first, std::int64_t columns) {
  at::Tensor x = at::zeros({1, columns}, at::kFloat);
  x[0].narrow(0, 0, static_cast<std::int64_t>(first.size())).copy_(at::tensor(first));
  return x;
}

std::vector<int> bytes(const at::Tensor& x) {
  std::vector<int> result;
  const at::Tensor flat = x.contiguous().view({-1});
  for (std::int64_t i = 0; i < flat.numel(); ++i) result.push_back(flat[i].item<int>());
  return result;
}

/// What the numbers stand for, in fp64 and without padding.
at::Tensor meaning(const BlockScaled& x, std::int64_t columns) {
  at::Tensor all = in_fp32(x).to(at::kDouble);
  if (x.scales.of_tensor.defined()) all = all * x.scales.of_tensor.to(at::kDouble);
  return all.narrow(-1, 0, columns);
}

// 448 is the largest number of e4m3. A power of two is written as its exponent plus 127.
TEST(BlockScaling, Mxfp8TakesTheLeastPowerOfTwoThatFitsTheLargestOfThirtyTwo) {
  const struct {
    float largest;
    int scale;
  } rows[] = {{448, 127},    {448.5f, 128}, {896, 128},   {1, 119},
              {0.875f, 118}, {0, 0},        {1e30f, 218}, {-448, 127}};
  for (const auto& one : rows)
    EXPECT_EQ(bytes(block_scales(row({0.25f * one.largest, one.largest}, 32), BlockFormat::mxfp8,
                                 BlockShape::row)
                        .of_block),
              std::vector<int>{one.scale})
        << one.largest;
  const at::Tensor two = at::cat({row({1}, 32), row({448}, 32)}, 1);
  EXPECT_EQ(bytes(block_scales(two, BlockFormat::mxfp8, BlockShape::row).of_block),
            (std::vector<int>{119, 127}))
      << "a block has a scale of its own";
}

// With 1 as the largest number the scale is 2^-8: 256 is 0x78, 0.3 becomes 76.8 and then 80 (0x6a).
TEST(BlockScaling, Mxfp8RoundsToTheBytesOfE4m3) {
  const BlockScaled x =
      block_scaled(row({1, 0.3f, -1, 0}, 32), BlockFormat::mxfp8, BlockShape::row);
  EXPECT_EQ(bytes(x.numbers.narrow(1, 0, 4)), (std::vector<int>{0x78, 0x6a, 0xf8, 0}));
  EXPECT_EQ(in_fp32(x)[0][1].item<float>(), 0.3125f);
}

// 2^-126 is the least scale with a mantissa of its own in fp32. Below it, numbers are zero in e4m3,
// as in Transformer Engine.
TEST(BlockScaling, Mxfp8ScalesTheLeastNumbersAndRoundsSmallerOnesToZero) {
  const float least = std::ldexp(1.0f, -126);
  const BlockScaled x =
      block_scaled(row({448 * least, least}, 32), BlockFormat::mxfp8, BlockShape::row);
  EXPECT_EQ(bytes(x.scales.of_block), std::vector<int>{1});
  EXPECT_EQ(bytes(x.numbers.narrow(1, 0, 2)), (std::vector<int>{0x7e, 0x38}));  // 448 and 1
  const BlockScaled below =
      block_scaled(row({0.25f * least}, 32), BlockFormat::mxfp8, BlockShape::row);
  EXPECT_EQ(bytes(below.scales.of_block), std::vector<int>{0});
  EXPECT_EQ(bytes(below.numbers.narrow(1, 0, 1)), std::vector<int>{0});
}

// The largest number of the tensor is 6, so its blocks' scales are multiples of 1/448. The scale of
// the first block is 448 (0x7e), and its numbers are rounded as they are. That of the second is a
// sixth of 448 rounded to 72 (0x69): 1 becomes 6.2 and then 6.
TEST(BlockScaling, Nvfp4HasAScaleOfTheTensorAndOneInE4m3OfSixteen) {
  const at::Tensor two =
      at::cat({row({6, 0.3f, 2.5f, 5, -1.75f, -0.25f, 0.75f, 3.4f}, 16), row({1, 0.5f}, 16)}, 1);
  const BlockScaled x = block_scaled(two, BlockFormat::nvfp4, BlockShape::row);
  EXPECT_EQ(x.scales.of_tensor.item<float>(), 1.0f / 448);
  EXPECT_EQ(bytes(x.scales.of_block), (std::vector<int>{0x7e, 0x69}));
  // 6, 0.5, 2, 4, -2, -0, 1, 3, and in the second block 6 and 3.1 as 3.
  EXPECT_EQ(bytes(x.numbers.narrow(1, 0, 8)), (std::vector<int>{7, 1, 4, 6, 12, 8, 2, 5}));
  EXPECT_EQ(bytes(x.numbers.narrow(1, 16, 2)), (std::vector<int>{7, 5}));
  EXPECT_EQ(x.columns(), 32);
  EXPECT_EQ(meaning(x, 32)[0][16].item<double>(), 6 * 72.0 * (1.0f / 448));
}

TEST(BlockScaling, GivesWhatEachNumberGivesByHand) {
  for (const auto& sizes : {std::vector<std::int64_t>{5, 96}, {33, 40}, {1, 7}, {16, 16}})
    for (const double size : {1.0, 1e-3, 1e4}) {
      const at::Tensor x = numbers(sizes) * size;
      const std::int64_t columns = sizes[1];
      EXPECT_TRUE(at::equal(meaning(block_scaled(x, BlockFormat::mxfp8, BlockShape::row), columns),
                            blocks_by_hand(x, /*nvfp4=*/false)))
          << columns;
      for (const bool squares : {false, true})
        EXPECT_TRUE(at::equal(meaning(block_scaled(x, BlockFormat::nvfp4,
                                                   squares ? BlockShape::square : BlockShape::row),
                                      columns),
                              blocks_by_hand(x, /*nvfp4=*/true, squares)))
            << columns << squares;
    }
}

TEST(BlockScaling, TheTransposeHasOtherNumbersUnlessScalesBelongToSquares) {
  const at::Tensor x = numbers({32, 48});
  const auto difference = [&](BlockFormat format, BlockShape shape) {
    return (meaning(block_scaled(x, format, shape), 48) -
            meaning(block_scaled(x.t(), format, shape), 32).t())
        .abs()
        .max()
        .item<double>();
  };
  EXPECT_GT(difference(BlockFormat::mxfp8, BlockShape::row), 0);
  EXPECT_GT(difference(BlockFormat::nvfp4, BlockShape::row), 0);
  EXPECT_EQ(difference(BlockFormat::nvfp4, BlockShape::square), 0);
  for (const at::Tensor& one : block_scaled(x.t(), BlockFormat::mxfp8, BlockShape::row).tensors())
    EXPECT_TRUE(one.is_contiguous()) << "as the kernels read it";
}

TEST(BlockScaling, OfExpertsIsThatOfEach) {
  const at::Tensor x = at::stack({numbers({7, 40}), 100 * numbers({7, 40})});
  for (const BlockFormat format : {BlockFormat::mxfp8, BlockFormat::nvfp4}) {
    const BlockScaled all = block_scaled(x, format, BlockShape::row);
    for (std::int64_t e = 0; e < 2; ++e) {
      const BlockScaled one = block_scaled(x[e], format, BlockShape::row);
      const std::vector<at::Tensor> got = all.of_expert(e).tensors(), want = one.tensors();
      ASSERT_EQ(got.size(), want.size());
      for (std::size_t i = 0; i < got.size(); ++i) EXPECT_TRUE(at::equal(got[i], want[i])) << i;
    }
    EXPECT_EQ(block_scaled(x.narrow(1, 0, 0), format, BlockShape::row).rows(), 0)
        << "experts without tokens";
    EXPECT_EQ(block_scaled(x.narrow(1, 0, 0).transpose(1, 2), format, BlockShape::row).columns(),
              0);
  }
}

TEST(BlockScaling, KeepsZerosAndWhatIsNotANumber) {
  for (const BlockFormat format : {BlockFormat::mxfp8, BlockFormat::nvfp4}) {
    const at::Tensor zeros = at::zeros({2, 32});
    EXPECT_TRUE(at::equal(meaning(block_scaled(zeros, format, BlockShape::row), 32),
                          zeros.to(at::kDouble)));
    const at::Tensor x = row({1, std::numeric_limits<float>::quiet_NaN()}, 32);
    EXPECT_TRUE(meaning(block_scaled(x, format, BlockShape::row), 32)[0][1].isnan().item<bool>())
        << "a gradient that is not a number has to be found by the checks for it";
  }
}

TEST(BlockScaling, TheTransformIsOrthogonalAndSpreadsAnOutlier) {
  const at::Tensor hadamard = hadamard_with_signs(at::kCPU);
  EXPECT_TRUE(at::equal(at::mm(hadamard, hadamard.t()), at::eye(16)));
  const at::Tensor spread = transformed(row({0, 0, 0, 64}, 16), hadamard);
  EXPECT_TRUE(at::equal(spread.abs().narrow(1, 0, 16), at::full({1, 16}, 16.0f)));
  EXPECT_EQ(spread.size(1), kRowMultiple);
  EXPECT_EQ(spread[0][0].item<float>(), -16) << "the fourth sign is negative";
  const at::Tensor x = numbers({3, 40}).to(at::kBFloat16);
  EXPECT_EQ(transformed(x, hadamard).scalar_type(), at::kBFloat16);
}

}  // namespace
}  // namespace graphproof::workloads::block_scaling_test
