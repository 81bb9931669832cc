#include "suites/checks/memory/theil_sen.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace graphproof::checks {
namespace {

std::vector<SeriesPoint> series(const std::vector<double>& values) {
  std::vector<SeriesPoint> points;
  for (const double value : values) points.push_back({static_cast<double>(points.size()), value});
  return points;
}

TEST(TheilSen, ALineHasItsSlopeAndAnIntervalOfNoWidth) {
  const Trend trend = theil_sen(series({3, 5, 7, 9, 11, 13, 15, 17}));
  EXPECT_DOUBLE_EQ(trend.slope, 2);
  EXPECT_DOUBLE_EQ(trend.lower, 2);
  EXPECT_DOUBLE_EQ(trend.upper, 2);
}

TEST(TheilSen, AConstantSeriesHasNoTrend) {
  const Trend trend = theil_sen(series(std::vector<double>(12, 7)));
  EXPECT_DOUBLE_EQ(trend.slope, 0);
  EXPECT_DOUBLE_EQ(trend.upper, 0);
  EXPECT_DOUBLE_EQ(trend.lower, 0);
}

TEST(TheilSen, OneOutlierDoesNotMoveTheSlope) {
  EXPECT_DOUBLE_EQ(theil_sen(series({0, 0, 0, 0, 1e9, 0, 0, 0, 0, 0, 0, 0})).slope, 0);
}

TEST(TheilSen, AJumpInTheMiddleWidensTheIntervalToAFewTimesJumpOverLength) {
  const Trend trend = theil_sen(series({0, 0, 0, 0, 0, 0, 12, 12, 12, 12, 12, 12}));
  EXPECT_GE(trend.upper, 12.0 / 12);
  EXPECT_LE(trend.upper, 3 * 12.0 / 12);
}

// Sen 1968, section 6: seven points, 21 slopes, C = 1.96 * sqrt(44.33) = 13.05, so ranks 3.97
// and 18.03. He rounds them to 4 and 18, which are 26/7 and 35/8; we round outwards.
TEST(TheilSen, TheIntervalIsThatOfKendallsTau) {
  const std::vector<double> values = {9, 15, 19, 20, 45, 55, 78};
  const std::vector<double> at = {1, 2, 3, 4, 10, 12, 18};
  std::vector<SeriesPoint> points;
  for (std::size_t i = 0; i < at.size(); ++i) points.push_back({at[i], values[i]});
  const Trend trend = theil_sen(points);
  EXPECT_DOUBLE_EQ(trend.slope, 4);
  EXPECT_NEAR(trend.lower, 11.0 / 3, 1e-12);
  EXPECT_NEAR(trend.upper, 5.0, 1e-12);
}

TEST(TheilSen, TheSlopeLiesInItsIntervalAndFollowsScaleAndShift) {
  EXPECT_TRUE(rc::check([](std::vector<int> drawn) {
    while (drawn.size() < kFewestTrendPoints) drawn.push_back(static_cast<int>(drawn.size()));
    drawn.resize(std::min<std::size_t>(drawn.size(), 40));
    std::vector<double> values(drawn.begin(), drawn.end()), moved;
    for (const double value : values) moved.push_back(2 * value + 1024);
    const Trend trend = theil_sen(series(values)), other = theil_sen(series(moved));
    RC_ASSERT(trend.lower <= trend.slope && trend.slope <= trend.upper);
    RC_ASSERT(std::abs(other.upper - 2 * trend.upper) <= 1e-6 * (1 + std::abs(trend.upper)));
  }));
}

}  // namespace
}  // namespace graphproof::checks
