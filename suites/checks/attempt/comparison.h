// Judging `compare` and `step` lines: what D01 and D02 share.
#pragma once

#include "suites/checks/attempt/judgement.h"

namespace graphproof::checks {

using record::CompareLine;

/// Two arms and the name of their comparison.
struct ArmPair {
  std::string_view compared, left, right;
};

/// The comparisons of that name, in file order.
std::vector<const CompareLine*> comparisons(Judgement& judgement, const RankFiles& files,
                                            std::string_view compared);

/// A defect unless `line` compares the arms of `pair`, as many tensors and bytes as the rank's
/// first comparison of outputs (of evaluation: its first of losses), more than zero of both, and
/// found them equal.
void judge_comparison(Judgement& judgement, const RankFiles& files, const CompareLine& line,
                      const ArmPair& pair);

/// Judges every comparison of the pair and wants one at step `last_step` or later: parameters
/// are chained, so equal ones at the end mean equal updates on the way.
void judge_final_comparison(Judgement& judgement, const RankFiles& files, const ArmPair& pair,
                            std::int64_t last_step);

/// Wants the `step` lines of both arms for every step from `first` to `last`: a finite loss of each
/// microbatch, and bits and digests equal where both arms have them. A digest that one arm alone
/// has is a defect.
void judge_steps(Judgement& judgement, const RankFiles& files, const ArmPair& pair,
                 std::int64_t first, std::int64_t last);

}  // namespace graphproof::checks
