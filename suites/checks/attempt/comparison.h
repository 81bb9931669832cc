// Judges `compare` and `step` lines, for the checks of D01 and D02.
#pragma once

#include "suites/checks/attempt/judgement.h"

namespace graphproof::checks {

using record::CompareLine;

/// Two arms and the name of their comparison, the field `compared` of its lines.
struct ArmPair {
  std::string_view compared, left, right;
};

/// The comparisons of that name, in file order. The pointers refer to `files`.
std::vector<const CompareLine*> comparisons(Judgement& judgement, const RankFiles& files,
                                            std::string_view compared);

/// Reports a defect unless `line` compares the arms of `pair` and found them equal, or within the
/// tolerance that the case states (tolerance.h), with as many tensors and bytes as the rank's first
/// comparison, and more than zero of both. Comparisons of an evaluation are measured against the
/// rank's first comparison of an evaluation, and those of a rollout against the first of those.
void judge_comparison(Judgement& judgement, const RankFiles& files, const CompareLine& line,
                      const ArmPair& pair);

/// Judges every comparison of the pair and demands one at step `last_step` or later. Each update
/// starts from the parameters of the one before, so equal parameters at the end mean that all
/// updates were equal.
void judge_final_comparison(Judgement& judgement, const RankFiles& files, const ArmPair& pair,
                            std::int64_t last_step);

/// Demands a `step` line of both arms for every step from `first` to `last`, each with a finite
/// loss for every microbatch, and with the same loss bits and the same digests in both arms.
/// Digests of a class with a tolerance may differ if a comparison of the step judges how much.
void judge_steps(Judgement& judgement, const RankFiles& files, const ArmPair& pair,
                 std::int64_t first, std::int64_t last);

}  // namespace graphproof::checks
