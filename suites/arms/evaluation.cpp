#include "suites/arms/evaluation.h"

#include "fixtures/tensors/torch.h"
#include "suites/arms/arm_lines.h"
#include "workloads/training/data.h"

namespace graphproof::suites {

void run_evaluation(const CaseParts& parts, Arm& eager, Arm& graph) {
  const StepConfig& config = parts.config;
  const auto batch = [&](std::int64_t evaluation) {
    const c10::StreamGuard guard(parts.stream);
    return workloads::make_batch(config.model, config.layout, config.seed,
                                 config.steps + evaluation, parts.device.torch_device());
  };
  Snapshot first;
  for (std::int64_t i = 0; i < config.evaluations(); ++i) {
    const workloads::Batch unseen = batch(i);
    const Snapshot left = eager.evaluate(i, unseen);
    Snapshot right = graph.evaluate(i, unseen);
    write_comparison(parts, eager.name(), graph.name(), "evaluation", i, "fresh", left, right);
    if (i == 0) first = std::move(right);
  }
  const Snapshot again = graph.evaluate(config.evaluations(), batch(0));
  write_comparison(parts, graph.name(), graph.name(), "evaluation_repeats", config.evaluations(),
                   "fresh", first, again);
  graph.write_evaluated(config.evaluation_step());
}

}  // namespace graphproof::suites
