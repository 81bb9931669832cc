// Intervals of measured quantities: the bootstrap of a mean, and the interval of a rate.
#pragma once

#include <span>

namespace graphproof::reports {

struct ConfidenceInterval {
  double low = 0, high = 0;
  bool operator==(const ConfidenceInterval&) const = default;
};

/// From fewer pairs no interval is given: a bootstrap of so few values is much too narrow.
inline constexpr int kFewestPairs = 8;

/// REQUIRES: `values` is not empty.
double mean(std::span<const double> values);

/// The 95 % interval of the mean of `values` by the percentile bootstrap (Efron and Tibshirani, An
/// Introduction to the Bootstrap, chapter 13). The same values give the same interval. With paired
/// differences as values it is a paired bootstrap. REQUIRES: `values` is not empty.
ConfidenceInterval bootstrap_mean(std::span<const double> values);

/// The 95 % interval of a rate of which `hits` of `trials` were seen (Wilson 1927). It is [0, 1]
/// without a trial. REQUIRES: 0 <= hits <= trials.
ConfidenceInterval wilson(int hits, int trials);

}  // namespace graphproof::reports
