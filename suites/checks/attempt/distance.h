// Judging how far tensors lie from a reference, as the lines `reference` and `padding` tell: both
// carry the bound of reordered sums.
#pragma once

#include "suites/checks/attempt/judgement.h"

namespace graphproof::checks {

/// What a bound may be at most, of a tensor's largest element: a wider one sees no defect.
double widest_bound(const Axes& axes);

/// Who lies how far from what: "the parallel arm's losses", "the single-rank model"; `bound_on`
/// names the bound; `why` what is wrong with a larger distance.
struct Distanced {
  std::string who, what, bound_on, why;
};
/// A defect unless the line's max_abs is known and within a bound that sees something; otherwise a
/// sighting.
void judge_distance(Judgement& judgement, const RankFiles& files, const record::Distance& distance,
                    const Distanced& distanced, double widest,
                    std::optional<std::int64_t> step = std::nullopt);

}  // namespace graphproof::checks
