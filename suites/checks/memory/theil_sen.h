// The trend of a short series that jumps: the median of the slopes between all pairs of points
// (Theil 1950, Sen 1968), which a single outlier or step cannot pull, and its confidence interval
// from the distribution of Kendall's tau.
#pragma once

#include <span>

namespace graphproof::checks {

/// `value` in any unit, `at` in steps; slopes are value per step.
struct SeriesPoint {
  double at = 0, value = 0;
};

struct Trend {
  double slope = 0;
  double lower = 0, upper = 0;  // of the two-sided 95 % interval
};

/// Below this many points the interval is wider than the pairs that it is made from.
inline constexpr int kFewestTrendPoints = 5;

/// REQUIRES: at least kFewestTrendPoints points, no two at the same place. O(n^2 log n).
Trend theil_sen(std::span<const SeriesPoint> points);

}  // namespace graphproof::checks
