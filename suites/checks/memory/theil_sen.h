// The trend of a short series that may have jumps: the median of the slopes between all pairs of
// points (Theil 1950, Sen 1968), which a single outlier or jump changes little, and its confidence
// interval from the distribution of Kendall's tau.
#pragma once

#include <span>

namespace graphproof::checks {

/// A point of a series: `value` in any unit, `at` in steps.
struct SeriesPoint {
  double at = 0, value = 0;
};

/// A slope in units of value per step.
struct Trend {
  double slope = 0;
  double lower = 0, upper = 0;  // of the two-sided 95 % interval
};

/// With fewer points the interval would be wider than the range of all slopes.
inline constexpr int kFewestTrendPoints = 5;

/// REQUIRES: at least kFewestTrendPoints points, no two at the same place. O(n^2 log n).
Trend theil_sen(std::span<const SeriesPoint> points);

}  // namespace graphproof::checks
