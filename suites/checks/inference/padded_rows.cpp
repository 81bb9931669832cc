// D72: padding takes no part in an inference job. Two eager runs differ in nothing but what their
// padded rows hold.
#include <algorithm>

#include "suites/checks/attempt/comparison.h"
#include "suites/checks/attempt/concat.h"
#include "suites/checks/inference/job_plan.h"

namespace graphproof::checks::d72 {

/// Comparison `padding` of eager_a with padded_eager is equal in every step. Unexercised on a rank
/// whose batches all fill their sizes.
record::CheckResult padded_rows(Judgement& judgement, const Attempt& attempt) {
  const ArmPair arms{"padding", "eager_a", "padded_eager"};
  const auto plan = job_plan(attempt.axes);
  for (const RankFiles& files : attempt.ranks) {
    const auto& of_rank = plan.at(replica_of(attempt.axes, files.rank));
    if (std::ranges::all_of(
            of_rank, [](const requests::Step& step) { return std::ssize(step.rows) == step.size; }))
      judgement.unexercised(concat("every batch of rank ", files.rank, " fills its size"));
    const auto lines = comparisons(judgement, files, arms.compared);
    for (const CompareLine* line : lines) judge_comparison(judgement, files, *line, arms);
    for (std::int64_t step = 0; step < judgement.expected().steps; ++step)
      if (std::ranges::none_of(lines, [&](const auto* line) { return line->step == step; }))
        judgement.absent(files, "comparison `padding`", step);
  }
  return judgement.result(
      concat("equal in ", judgement.expected().steps, " steps on ", attempt.ranks.size(), " ranks"),
      "the same results, whatever padded rows hold");
}

}  // namespace graphproof::checks::d72
