#include "suites/checks/memory/theil_sen.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <map>
#include <vector>

namespace graphproof::checks {
namespace {

constexpr double kNormal95 = 1.959964;  // two-sided 95 % quantile of the normal distribution

double median(const std::vector<double>& sorted) {
  const std::size_t middle = sorted.size() / 2;
  return sorted.size() % 2 == 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

/// Variance of Kendall's S for n points of which some have equal values (Kendall 1975,
/// equation 4.3).
double kendall_variance(std::span<const SeriesPoint> points) {
  const auto term = [](double count) { return count * (count - 1) * (2 * count + 5); };
  std::map<double, double> equal;
  for (const SeriesPoint& point : points) equal[point.value] += 1;
  double sum = term(static_cast<double>(points.size()));
  for (const auto& [value, count] : equal) sum -= term(count);
  return sum / 18;
}

}  // namespace

Trend theil_sen(std::span<const SeriesPoint> points) {
  assert(points.size() >= kFewestTrendPoints);
  std::vector<double> slopes;
  for (std::size_t left = 0; left < points.size(); ++left)
    for (std::size_t right = left + 1; right < points.size(); ++right)
      slopes.push_back((points[right].value - points[left].value) /
                       (points[right].at - points[left].at));
  std::ranges::sort(slopes);
  const double count = static_cast<double>(slopes.size());
  const double half_width = kNormal95 * std::sqrt(kendall_variance(points));
  // Counted from 1, the lower end is slope number (N - C) / 2 and the upper end number
  // (N + C) / 2 + 1, rounded outwards.
  const auto at_rank = [&](double rank) {
    return slopes[static_cast<std::size_t>(std::clamp(rank, 1.0, count)) - 1];
  };
  return {.slope = median(slopes),
          .lower = at_rank(std::floor((count - half_width) / 2)),
          .upper = at_rank(std::ceil((count + half_width) / 2 + 1))};
}

}  // namespace graphproof::checks
