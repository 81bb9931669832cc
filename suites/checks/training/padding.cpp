// D38: padding takes no part in losses and gradients.
#include <algorithm>

#include "suites/checks/attempt/concat.h"
#include "suites/checks/attempt/distance.h"
#include "suites/checks/training/bucket_lengths.h"

namespace graphproof::checks::d38 {

using record::PaddingLine;

/// For each bucket, losses and gradients of a padded eager step lie within the bound of reordered
/// sums of those of the same step without padding.
record::CheckResult padding(Judgement& judgement, const Attempt& attempt) {
  if (!judgement.has_replays()) return judgement.result("", "");
  for (const RankFiles& files : attempt.ranks) {
    bool any = false;
    const auto lines = judgement.lines<PaddingLine>(files);
    for (const std::int64_t bucket : buckets_of(attempt.axes)) {
      const auto line = std::ranges::find(lines, bucket, &PaddingLine::length);
      if (line == lines.end()) {
        judgement.absent<PaddingLine>(files, concat("of length ", bucket));
        continue;
      }
      any |=
          std::ranges::any_of(line->lengths, [&](std::int64_t length) { return length < bucket; });
      judge_distance(judgement, files, line->distance,
                     {.measured = "losses and gradients of a padded step",
                      .reference = "those without padding",
                      .bounded = "losses and gradients",
                      .why = "what the job learns depends on how its batches were padded"},
                     widest_bound(attempt.axes), line->step);
    }
    if (!any && !lines.empty()) judgement.unexercised("every microbatch filled its bucket");
  }
  return judgement.result(
      concat("within the bound of reordered sums on ", attempt.ranks.size(), " ranks"),
      "no part in losses and gradients");
}

}  // namespace graphproof::checks::d38
