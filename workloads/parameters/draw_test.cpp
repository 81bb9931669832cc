#include "workloads/parameters/draw.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>

namespace graphproof::workloads {
namespace {

TEST(Draw, IsTheSameForTheSameSeedNameAndIndex) {
  const Draw one(1, "layers.0.mlp.up.weight"), two(1, "layers.0.mlp.up.weight");
  for (std::uint64_t i : {0u, 1u, 1000000u}) EXPECT_EQ(one.bits(i), two.bits(i));
}

TEST(Draw, ChangesWithSeedNameAndIndex) {
  const Draw draw(1, "a");
  EXPECT_NE(draw.bits(0), Draw(2, "a").bits(0));
  EXPECT_NE(draw.bits(0), Draw(1, "b").bits(0));
  EXPECT_NE(draw.bits(0), draw.bits(1));
}

TEST(Draw, ConsecutiveSeedsAndNamesShareNoNumbers) {
  // If the key only added the seed, stream 2 would be stream 1 shifted by one.
  for (std::uint64_t seed = 1; seed < 20; ++seed)
    for (std::uint64_t shift = 0; shift < 20; ++shift)
      EXPECT_NE(Draw(seed, "a").bits(shift), Draw(seed + 1, "a").bits(0)) << seed << " " << shift;
}

TEST(Draw, UniformHasTheMeanAndSpreadOfItsRange) {
  const Draw draw(7, "weight");
  constexpr int kCount = 20000;
  double sum = 0, squares = 0;
  for (int i = 0; i < kCount; ++i) {
    const float u = draw.uniform(i);
    ASSERT_GE(u, -1.0f);
    ASSERT_LT(u, 1.0f);
    sum += u;
    squares += u * u;
  }
  // Five standard errors of the mean of u and of u^2: variances 1/3 and 4/45.
  EXPECT_NEAR(sum / kCount, 0.0, 5 * std::sqrt(1.0 / 3 / kCount));
  EXPECT_NEAR(squares / kCount, 1.0 / 3, 5 * std::sqrt(4.0 / 45 / kCount));
}

TEST(Draw, BelowReachesEveryNumberAndNoOther) {
  const Draw draw(7, "tokens");
  std::array<int, 5> seen{};
  for (int i = 0; i < 200; ++i) ++seen.at(draw.below(5, i));
  for (int count : seen) EXPECT_GT(count, 0);
}

}  // namespace
}  // namespace graphproof::workloads
