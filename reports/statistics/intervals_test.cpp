#include "reports/statistics/intervals.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace graphproof::reports {
namespace {

TEST(Intervals, TheBootstrapOfEqualValuesHasNoWidth) {
  const std::vector<double> same(20, 0.25);
  EXPECT_EQ(bootstrap_mean(same), (ConfidenceInterval{0.25, 0.25}));
}

TEST(Intervals, TheBootstrapAgreesWithTheNormalIntervalOfManyValues) {
  std::vector<double> values;
  for (int i = 0; i < 400; ++i) values.push_back(i % 2 == 0 ? -1 : 1);
  // The standard error of the mean is 1 / sqrt(400).
  const ConfidenceInterval interval = bootstrap_mean(values);
  EXPECT_NEAR(interval.low, -1.96 / 20, 0.01);
  EXPECT_NEAR(interval.high, 1.96 / 20, 0.01);
  EXPECT_EQ(bootstrap_mean(values), interval) << "the same values give the same interval";
}

TEST(Intervals, WilsonIsAsPublished) {
  // Agresti and Coull 1998: 0 of 10 and 10 of 20.
  EXPECT_NEAR(wilson(0, 10).high, 0.2775, 5e-4);
  EXPECT_DOUBLE_EQ(wilson(0, 10).low, 0);
  EXPECT_NEAR(wilson(10, 20).low, 0.299, 1e-3);
  EXPECT_NEAR(wilson(10, 20).high, 0.701, 1e-3);
  EXPECT_EQ(wilson(0, 0), (ConfidenceInterval{0, 1}));
}

}  // namespace
}  // namespace graphproof::reports
