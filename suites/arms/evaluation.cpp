#include "suites/arms/evaluation.h"

#include "fixtures/tensors/torch.h"
#include "suites/case/arm_lines.h"
#include "workloads/training/data.h"

namespace graphproof::suites {

namespace {

/// A batch that no step of training has.
workloads::Batch unseen_batch(const CaseParts& parts, std::int64_t evaluation) {
  const StepConfig& config = parts.config;
  const c10::StreamGuard guard(parts.stream);
  return workloads::make_batch(config.model, config.layout, config.seed, config.steps + evaluation,
                               parts.device.torch_device());
}

}  // namespace

void run_evaluation(const CaseParts& parts, Arm& eager, Arm& graph) {
  const StepConfig& config = parts.config;
  Snapshot first;
  for (std::int64_t i = 0; i < config.evaluations(); ++i) {
    const workloads::Batch unseen = unseen_batch(parts, i);
    const Snapshot left = eager.evaluate(i, unseen);
    Snapshot right = graph.evaluate(i, unseen);
    write_comparison(parts, eager.name(), graph.name(), "evaluation", i, "fresh", left, right);
    if (i == 0) first = std::move(right);
  }
  const Snapshot again = graph.evaluate(config.evaluations(), unseen_batch(parts, 0));
  write_comparison(parts, graph.name(), graph.name(), "evaluation_repeats", config.evaluations(),
                   "fresh", first, again);
}

void run_later_evaluation(const CaseParts& parts, Arm& eager, Arm& graph) {
  const std::int64_t number = parts.config.evaluations() + 1;
  const workloads::Batch unseen = unseen_batch(parts, 0);
  const Snapshot left = eager.evaluate(number, unseen), right = graph.evaluate(number, unseen);
  write_comparison(parts, eager.name(), graph.name(), "evaluation_later", number, "fresh", left,
                   right);
  graph.write_evaluated(parts.config.steps);
}

}  // namespace graphproof::suites
