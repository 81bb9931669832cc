// D48: steps of changing sequence length equal eager steps.
#include <algorithm>

#include "suites/checks/attempt/comparison.h"
#include "suites/checks/attempt/concat.h"
#include "suites/checks/training/bucket_lengths.h"

namespace graphproof::checks::d48 {

using record::BucketLine;

/// Each step of changing length equals the eager step, whose padding has other tokens unless parts
/// are recomputed (suites/arms/shape_buckets.cpp). Both arms of the free run are equal at its end.
record::CheckResult shape_buckets(Judgement& judgement, const Attempt& attempt) {
  if (!judgement.has_replays()) return judgement.result("", "");
  for (const RankFiles& files : attempt.ranks) {
    const auto lines = judgement.lines<BucketLine>(files);
    const std::int64_t last = lines.empty() ? 0 : lines.back().step;
    judge_final_comparison(judgement, files, kInLockstep, last);
    judge_final_comparison(judgement, files, kInFreeRun, last);
    const auto compared = comparisons(judgement, files, kInLockstep.compared);
    for (const BucketLine& line : lines)
      if (std::ranges::none_of(compared,
                               [&](const CompareLine* one) { return one->step == line.step; }))
        judgement.absent(files, "comparison `buckets`", line.step);
  }
  return judgement.result(
      concat("equal in lockstep and in a free run on ", attempt.ranks.size(), " ranks"),
      "eager's bytes, after any evictions");
}

}  // namespace graphproof::checks::d48
