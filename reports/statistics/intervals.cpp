#include "reports/statistics/intervals.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <vector>

namespace graphproof::reports {

double mean(std::span<const double> values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

ConfidenceInterval bootstrap_mean(std::span<const double> values) {
  // The ends of the interval are the 25th of each end.
  constexpr std::size_t kResamples = 1000, kTail = 25;
  // SplitMix64 (Steele, Lea and Flood 2014): some ten million numbers are drawn for a large run.
  std::uint64_t state = 1;
  const auto next = [&state] {
    std::uint64_t z = state += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  };
  const auto count = static_cast<std::uint64_t>(values.size());
  std::vector<double> means(kResamples);
  for (double& one : means) {
    double sum = 0;
    // The upper 32 bits, scaled to an index without a division.
    for (std::uint64_t i = 0; i < count; ++i) sum += values[((next() >> 32) * count) >> 32];
    one = sum / static_cast<double>(count);
  }
  std::sort(means.begin(), means.end());
  return {means[kTail - 1], means[kResamples - kTail]};
}

ConfidenceInterval wilson(int hits, int trials) {
  if (trials == 0) return {0, 1};
  constexpr double kZ = 1.959964;  // of the normal distribution, for 95 %
  const double n = trials, rate = hits / n;
  const double middle = rate + kZ * kZ / (2 * n);
  const double half = kZ * std::sqrt(rate * (1 - rate) / n + kZ * kZ / (4 * n * n));
  const double scale = 1 + kZ * kZ / n;
  return {std::max(0.0, (middle - half) / scale), std::min(1.0, (middle + half) / scale)};
}

}  // namespace graphproof::reports
