// D82: the optimizer moved every tensor as its definition says, in every step and on every rank.
// D04 measures one parameter, and the layout reference compares gradients, so neither sees a norm
// that is not updated, or a rank whose moments stand still from some step on.
#include "suites/checks/attempt/concat.h"
#include "suites/checks/attempt/judgement.h"

namespace graphproof::checks::d82 {
namespace {

using record::UpdatesLine;

}  // namespace

/// After every step of eager_a, all tensors that the optimizer writes are within the bound of fp32
/// arithmetic of what their values before the step and the gradients give.
record::CheckResult every_update(Judgement& judgement, const Attempt& attempt) {
  const std::int64_t steps = judgement.expected().steps;
  for (const RankFiles& files : attempt.ranks) {
    for (std::int64_t step = 0; step < steps; ++step) {
      const auto* line = judgement.first<UpdatesLine>(files, "eager_a", step);
      if (!line) {
        judgement.absent<UpdatesLine>(files, "of arm eager_a", step);
        continue;
      }
      if (line->error <= line->bound) {
        judgement.confirm(files.rank);
        continue;
      }
      judgement.defect({.rank = files.rank,
                        .step = step,
                        .what = concat("the optimizer moved `", line->worst,
                                       "` otherwise than it should in step ", step),
                        .got = concat("an element is off by ", line->error),
                        .want = concat("at most ", line->bound, ", which fp32 arithmetic explains"),
                        .why = "all arms have the same optimizer, so they agree, and train another "
                               "model than the one that was asked for"});
    }
  }
  return judgement.result(
      concat("every update of ", steps, " steps on ", attempt.ranks.size(), " ranks"),
      "within the bound of fp32 arithmetic");
}

}  // namespace graphproof::checks::d82
