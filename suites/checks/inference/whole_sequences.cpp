// D73: an inference job computes what one pass over the whole sequence of each request computes.
// All other comparisons of such a job share its cache and its batches, so only this one finds a
// request that attends to another's tokens in every arm.
#include "suites/checks/attempt/concat.h"
#include "suites/checks/attempt/distance.h"
#include "suites/checks/inference/job_plan.h"

namespace graphproof::checks::d73 {

/// Every rank compared the logits of every sampled token of every request that ended, in the last
/// rollout if there are several, and they lie within the bound of reordered sums.
record::CheckResult whole_sequences(Judgement& judgement, const Attempt& attempt) {
  const std::string arm = arm_of_sequences(attempt.axes);
  for (const RankFiles& files : attempt.ranks) {
    const requests::Ended want = ended_requests(attempt.axes, replica_of(attempt.axes, files.rank));
    const auto* line = judgement.first<record::SequencesLine>(files, arm);
    if (!line) {
      judgement.absent<record::SequencesLine>(files, "of arm " + arm);
      continue;
    }
    if (want.requests == 0) {
      judgement.unexercised(concat("no request of rank ", files.rank, " ended"));
      continue;
    }
    if (line->requests != want.requests || line->tokens != want.tokens) {
      judgement.defect({.rank = files.rank,
                        .step = std::nullopt,
                        .what = "other requests were compared than the job has finished",
                        .got = concat(line->requests, " requests with ", line->tokens, " tokens"),
                        .want = concat(want.requests, " requests with ", want.tokens, " tokens"),
                        .why = "a request that was left out may have any result"});
      continue;
    }
    judge_distance(judgement, files, line->distance,
                   {.measured = "logits that were computed token by token",
                    .reference = "one pass over whole sequences",
                    .bounded = "logits",
                    .why = "a request attends to other tokens than its own"},
                   widest_bound(attempt.axes));
  }
  return judgement.result(
      concat("every finished request within its bound on ", attempt.ranks.size(), " ranks"),
      "within the bound of reordered sums");
}

}  // namespace graphproof::checks::d73
