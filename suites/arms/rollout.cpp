#include "suites/arms/rollout.h"

#include "suites/case/arm_lines.h"
#include "suites/inference/whole_sequences.h"

namespace graphproof::suites {

void run_rollout(const CaseParts& parts, Arm& eager, Arm& graph, const Rollout& rollout) {
  std::vector<Snapshot> left = eager.roll_out();
  const std::vector<Snapshot> right = graph.roll_out();
  const std::int64_t first = rollout.round * std::ssize(left);
  parts.scope.enter(Phase::compare, graph.rollouts().name(), first);
  for (std::size_t index = 0; index < left.size(); ++index)
    write_comparison(parts, eager.rollouts().name(), graph.rollouts().name(), "rollout",
                     first + static_cast<std::int64_t>(index), "fresh", left[index], right[index]);
  if (!rollout.last) return;
  for (Snapshot& results : left) results = sampled_results(std::move(results));
  write_sequences(parts, eager.rollouts(), left);
}

}  // namespace graphproof::suites
