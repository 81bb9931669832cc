// D33: a capture that failed and was undone leaves no memory in its pool.
#include <algorithm>

#include "suites/checks/attempt/concat.h"
#include "suites/checks/attempt/judgement.h"

namespace graphproof::checks::d33 {

using record::FailedCaptureLine;

/// The pools of failed captures that were undone have no bytes left. Not applicable if no capture
/// failed.
record::CheckResult failed_capture_leaves_nothing(Judgement& judgement, const Attempt& attempt) {
  if (!judgement.has_replays()) return judgement.result("", "");
  const bool any = std::ranges::any_of(attempt.ranks, [&](const RankFiles& files) {
    return !judgement.lines<FailedCaptureLine>(files).empty();
  });
  if (!any) judgement.not_applicable("no capture failed");
  if (judgement.settled()) return judgement.result("", "");
  for (const RankFiles& files : attempt.ranks) {
    for (const FailedCaptureLine& line : judgement.lines<FailedCaptureLine>(files)) {
      if (line.pool_bytes <= 0) {
        judgement.confirm(files.rank);
        continue;
      }
      judgement.defect(
          {.rank = files.rank,
           .step = std::nullopt,
           .what = concat("a failed capture in arm ", line.arm, " left memory in its pool"),
           .got = concat(line.pool_bytes, " bytes after reset and empty_cache, code ", line.code),
           .want = "0 bytes",
           .why =
               "a trainer that retries the capture loses memory with each try (pytorch#190348)"});
    }
  }
  return judgement.result(concat("nothing left on ", attempt.ranks.size(), " ranks"),
                          "0 bytes after a failed capture");
}

}  // namespace graphproof::checks::d33
