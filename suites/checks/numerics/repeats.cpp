// D02: two runs of one arm from one seed are equal. Only then does a comparison of an eager run
// with a graph prove anything.
#include "suites/checks/attempt/arms.h"
#include "suites/checks/attempt/comparison.h"
#include "suites/checks/attempt/concat.h"
#include "suites/checks/attempt/tolerance.h"

namespace graphproof::checks::d02 {

/// Both eager runs have every step, with finite losses and equal digests, and their comparison is
/// equal. In a case that states a tolerance they are within it, and within what rounding explains
/// (tolerance.h), and so is the eager arm of the lockstep. An error in phase eager fails the check,
/// because no graph can be judged then.
record::CheckResult eager_repeats(Judgement& judgement, const Attempt& attempt) {
  const std::int64_t steps = judgement.expected().steps;
  const ArmPair arms{"eager_repeats", "eager_a", control_arms(attempt).eager};
  for (const RankFiles& files : attempt.ranks) {
    for (const record::ErrorLine& error : judgement.lines<record::ErrorLine>(files)) {
      if (error.phase != record::Phase::eager) continue;
      judgement.defect({.rank = files.rank,
                        .step = error.step,
                        .what = "the eager arm met an error",
                        .got = concat(error.type, " error ", error.code, " at ", error.call, ": ",
                                      error.message),
                        .want = concat(steps, " eager steps without an error"),
                        .why = "no graph can be judged against a broken eager arm"});
    }
    judge_steps(judgement, files, arms, 0, steps - 1);
    judge_final_comparison(judgement, files, arms, steps - 1);
    if (tolerates(attempt) && judgement.expected().graph)
      judge_final_comparison(judgement, files, {"eager_again", "eager_a", "lockstep_eager"},
                             steps - 1);
  }
  return judgement.result(
      concat(steps, " of ", steps, " eager steps equal on ", attempt.ranks.size(), " ranks",
             spread_summary(judgement, "eager_repeats")),
      "all equal");
}

/// The second graph run is equal to the first at its last step. If it is solo_graph, the digests of
/// every step are equal, too.
record::CheckResult graph_repeats(Judgement& judgement, const Attempt& attempt) {
  if (!judgement.has_replays()) return judgement.result("", "");
  const ControlArms control = control_arms(attempt);
  const ArmPair arms{"graph_repeats", "lockstep_graph", control.graph};
  const std::int64_t last = judgement.expected().steps - 1;
  for (const RankFiles& files : attempt.ranks) {
    if (control.solo) judge_steps(judgement, files, arms, 0, last);  // graph_b has no `step` lines
    judge_final_comparison(judgement, files, arms, last);
  }
  return judgement.result(
      concat("the second graph run is equal at its end on ", attempt.ranks.size(), " ranks",
             spread_summary(judgement, arms.compared)),
      "equal");
}

}  // namespace graphproof::checks::d02
