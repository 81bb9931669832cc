#include "suites/learning_rate.h"

#include <gtest/gtest.h>

#include <cmath>

namespace graphproof::suites {
namespace {

at::Tensor noise(std::int64_t size, std::uint64_t seed, double scale) {
  auto generator = at::detail::createCPUGenerator(seed);
  return at::randn({size}, generator) * scale;
}

TEST(LearningRate, ChangesInEveryStep) {
  for (std::int64_t step = 1; step < 1000; ++step) {
    EXPECT_NE(scheduled_learning_rate(step), scheduled_learning_rate(step - 1)) << step;
    EXPECT_GT(scheduled_learning_rate(step), 0) << step;
  }
  EXPECT_DOUBLE_EQ(scheduled_learning_rate(0), 0.1);
  EXPECT_DOUBLE_EQ(scheduled_learning_rate(2), 0.09);
}

TEST(LearningRate, OfAnUpdateIsFoundWithinItsOwnBound) {
  for (const double rate : {0.1, 0.095, 0.01, 1e-4}) {
    const at::Tensor before = noise(4096, 1, 0.5), gradient = noise(4096, 2, 1e-3);
    const at::Tensor after = before - at::scalar_tensor(rate, at::kFloat) * gradient;
    const FeltRate felt = felt_learning_rate(before, after, gradient, rate);
    EXPECT_LE(std::abs(felt.rate - rate), felt.bound) << rate;
  }
}

TEST(LearningRate, BoundIsFarBelowOneStepOfTheSchedule) {
  const at::Tensor before = noise(4096, 1, 0.5), gradient = noise(4096, 2, 1e-3);
  const FeltRate felt = felt_learning_rate(before, before - 0.1f * gradient, gradient, 0.1);
  EXPECT_LT(felt.bound * 10, scheduled_learning_rate(0) - scheduled_learning_rate(1));
}

TEST(LearningRate, OfTheStepBeforeIsFarOutsideTheBound) {
  const at::Tensor before = noise(4096, 1, 0.5), gradient = noise(4096, 2, 1e-3);
  const auto frozen = static_cast<float>(scheduled_learning_rate(2));
  const FeltRate felt = felt_learning_rate(before, before - frozen * gradient, gradient, scheduled_learning_rate(3));
  EXPECT_GT(std::abs(felt.rate - scheduled_learning_rate(3)), 10 * felt.bound);
}

TEST(LearningRate, IsUnknownWhereEveryGradientIsZero) {
  const at::Tensor before = noise(16, 1, 1);
  EXPECT_TRUE(std::isnan(felt_learning_rate(before, before, at::zeros({16}), 0.1).rate));
}

}  // namespace
}  // namespace graphproof::suites
