// D43: gradients are reduced during the backward, also in replays.
#include <cmath>

#include "suites/checks/attempt/arms.h"
#include "suites/checks/attempt/concat.h"
#include "suites/checks/attempt/judgement.h"
#include "suites/checks/training/hyperparameter_line.h"

namespace graphproof::checks::d43 {

/// In every step there was at least one bucket of gradients, and the reduction of all buckets began
/// during the backward. PyTorch's reducer does not report when it begins, so the check does not
/// apply to it.
record::CheckResult overlapped_reduction(Judgement& judgement, const Attempt& attempt) {
  const WatchedSteps watched(judgement.expected());
  for (const RankFiles& files : attempt.ranks)
    for (std::int64_t step = watched.first; step <= watched.last; ++step) {
      const auto* line =
          hyperparameter_line(judgement, files, watched.arm, step, "buckets_overlapped");
      if (!line) {
        judgement.absent<record::HyperparameterLine>(
            files, concat("of buckets_overlapped in arm ", watched.arm), step);
        continue;
      }
      if (std::isfinite(line->host) && line->host > 0 && line->effective == line->host) {
        judgement.confirm(files.rank);
        continue;
      }
      judgement.defect(
          {.rank = files.rank,
           .step = step,
           .what = concat(
               "arm ", watched.arm,
               " began to reduce too few buckets of gradients during the backward of step ", step),
           .got = concat(line->effective, " of ", line->host, " buckets"),
           .want = "all, and at least one",
           .why =
               "a replay calls no hooks, so buckets that depend on hooks are reduced at the end of "
               "the step, where their time is not hidden"});
    }
  return judgement.result(
      concat("all buckets in ", watched.count(), " steps on ", attempt.ranks.size(), " ranks"),
      "all buckets");
}

}  // namespace graphproof::checks::d43
