// D12: tensors that a step returned do not change later. A caller may keep a loss to log it later.
#include "suites/checks/attempt/concat.h"
#include "suites/checks/attempt/judgement.h"

namespace graphproof::checks::d12 {

using record::HandedOutLine;

/// The losses that lockstep_graph returned in a replayed step are unchanged after the next step.
record::CheckResult kept_losses(Judgement& judgement, const Attempt& attempt) {
  if (!judgement.has_replays()) return judgement.result("", "");
  for (const RankFiles& files : attempt.ranks) {
    for (const std::int64_t step : judgement.expected().replayed_steps())
      if (step != judgement.expected().last_inputs_step &&
          !judgement.first<HandedOutLine>(files, "lockstep_graph", step))
        judgement.absent<HandedOutLine>(files, "of arm lockstep_graph", step);
    for (const HandedOutLine& line : judgement.lines<HandedOutLine>(files)) {
      const auto& [arm, step, what, then, later] = line;
      if (!then.empty() && then == later) {
        judgement.confirm(files.rank);
        continue;
      }
      judgement.defect(
          {.rank = files.rank,
           .step = step,
           .what = concat("the ", what, " that arm ", arm, " returned in step ", step,
                          " changed in the next step"),
           .got = concat("digest ", later.empty() ? "none" : later),
           .want = concat(then.empty() ? "a digest" : then, ", as when they were returned"),
           .why = "a caller that keeps a loss to log or average it later gets the loss of another "
                  "step"});
    }
  }
  return judgement.result(concat("unchanged one step later on ", attempt.ranks.size(), " ranks"),
                          "the returned losses");
}

}  // namespace graphproof::checks::d12
