#include "suites/checks/training/bucket_lengths.h"

namespace graphproof::checks {

std::string text_of(const Lengths& lengths) {
  std::string all;
  for (const std::int64_t length : lengths)
    all += (all.empty() ? "" : " ") + std::to_string(length);
  return all.empty() ? "none" : all;
}

Lengths buckets_of(const Axes& axes) {
  const std::int64_t bound = axes.integer("shape_buckets"), length = axes.integer("seq_length");
  Lengths buckets;
  for (std::int64_t piece = 1; piece <= bound + 1; ++piece)
    buckets.push_back(length * piece / (bound + 2));
  return buckets;
}

}  // namespace graphproof::checks
