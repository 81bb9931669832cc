#include "suites/checks/training/bucket_lengths.h"

namespace graphproof::checks {

std::string text_of(const Lengths& lengths) {
  std::string all;
  for (const std::int64_t length : lengths)
    all += (all.empty() ? "" : " ") + std::to_string(length);
  return all.empty() ? "none" : all;
}

Lengths buckets_of(const Axes& axes) {
  const std::int64_t bound = axes.integer("shape_buckets"), length = axes.integer("seq_length"),
                     cp = axes.integer("cp"),
                     unit = (cp > 1 ? 2 * cp : 1) *
                            (axes.flag("sequence_parallel") ? axes.integer("tp") : 1);
  Lengths buckets;
  for (std::int64_t piece = 1; piece <= bound + 1; ++piece)
    buckets.push_back(length / unit * piece / (bound + 2) * unit);
  return buckets;
}

}  // namespace graphproof::checks
