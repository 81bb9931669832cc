// Judges the distance of tensors from a reference. `reference` and `padding` lines have it, next to
// the bound that reordered floating point sums explain.
#pragma once

#include "suites/checks/attempt/judgement.h"

namespace graphproof::checks {

/// The largest distance that passes, as a share of a tensor's largest element, however wide the
/// bound of the line is: the bound grows with the depth of a model, and a larger one would accept
/// the distances that defects cause.
double widest_bound(const Axes& axes);

/// The words for messages about a distance.
struct DistanceWords {
  std::string measured;   // "the parallel arm's losses"
  std::string reference;  // "the single-rank model"
  std::string bounded;    // what the bound is on: "losses"
  std::string why;        // what a larger distance means
};
/// Reports a defect unless the distance is known and within both its bound and `widest`; confirms
/// the rank otherwise.
void judge_distance(Judgement& judgement, const RankFiles& files, const record::Distance& distance,
                    const DistanceWords& words, double widest,
                    std::optional<std::int64_t> step = std::nullopt);

}  // namespace graphproof::checks
