// D93: a job that generates between its training steps does so with the weights that it has by
// then. The other arms of such a case show that training goes on as if it had not generated:
// eager_a and free_graph have no rollouts.
#include <algorithm>

#include "suites/checks/attempt/comparison.h"
#include "suites/checks/attempt/concat.h"
#include "suites/checks/inference/job_plan.h"

namespace graphproof::checks::d93 {

/// In every rollout each step of inference has the results of eager inference (comparison rollout):
/// logits, tokens, keys, values and states. The first rollout follows the first replayed step, so
/// the weights change between any two of them.
record::CheckResult rollouts(Judgement& judgement, const Attempt& attempt) {
  if (!judgement.has_replays()) return judgement.result("", "");
  constexpr ArmPair kArms{"rollout", "lockstep_eager_rollout", "lockstep_graph_rollout"};
  const std::int64_t rollouts = judgement.expected().rollouts,
                     steps = rollouts * job_settings(attempt.axes).steps;
  for (const RankFiles& files : attempt.ranks) {
    const auto lines = comparisons(judgement, files, kArms.compared);
    for (const CompareLine* line : lines) judge_comparison(judgement, files, *line, kArms);
    for (std::int64_t step = 0; step < steps; ++step)
      if (std::ranges::none_of(lines, [&](const auto* line) { return line->step == step; }))
        judgement.absent(files, "comparison `rollout`", step);
  }
  return judgement.result(
      concat(rollouts, " rollouts equal in ", steps, " steps on ", attempt.ranks.size(), " ranks"),
      "the results of eager inference with the weights of each round");
}

}  // namespace graphproof::checks::d93
