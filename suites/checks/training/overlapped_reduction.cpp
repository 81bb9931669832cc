// D43: gradients are reduced while backward runs, in replays too.
#include <cmath>

#include "suites/checks/attempt/arms.h"
#include "suites/checks/attempt/concat.h"
#include "suites/checks/attempt/judgement.h"
#include "suites/checks/training/hyperparameter_line.h"

namespace graphproof::checks::d43 {

/// In every step the reduction of all buckets of gradients, more than none, began while backward
/// ran. PyTorch's reducer does not report when it begins.
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
               " began to reduce too few buckets of gradients under the backward of step ", step),
           .got = concat(line->effective, " of ", line->host, " buckets"),
           .want = "all, more than none",
           .why = "hooks that a replay does not call leave their buckets for the end of the step, "
                  "where nothing hides the time"});
    }
  return judgement.result(
      concat("all buckets in ", watched.count(), " steps on ", attempt.ranks.size(), " ranks"),
      "all buckets");
}

}  // namespace graphproof::checks::d43
