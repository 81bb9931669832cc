#include "suites/arms/paired_blocks.h"

#include <chrono>

#include "fixtures/device/modelled_clock.h"
#include "suites/case/arm_lines.h"

namespace graphproof::suites {
namespace {

/// Milliseconds by the cost model of a simulated device, or else by the host's clock.
double now_ms() {
  if (const auto modelled = capture::modelled_ms()) return *modelled;
  return std::chrono::duration<double, std::milli>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

/// Mean times of a step in a block.
struct BlockTimes {
  double wall_ms = 0, launch_ms = 0;
};

/// An arm and the number of its next step.
class TimedArm {
 public:
  TimedArm(const CaseParts& parts, const std::vector<StepInput>& inputs, std::string name,
           std::string impl, const std::vector<fixtures::NamedTensor>& eager)
      : parts_(parts),
        inputs_(inputs),
        arm_(parts, std::move(name), std::move(impl), Watch::free, eager) {
    if (arm_.graphs()) parts_.scope.boundary(Phase::capture);
    // Until the second step after the capture, things are still set up.
    while (step_ < parts_.config.first_replay() + 2) run();
    arm_.vote_if_not_captured();
    parts_.device.synchronize();
  }

  BlockTimes time(std::int64_t steps) {
    const double begin = now_ms();
    for (std::int64_t i = 0; i < steps; ++i) run();
    const double launched = now_ms();
    parts_.device.synchronize(parts_.stream);
    const auto count = static_cast<double>(steps);
    return {.wall_ms = (now_ms() - begin) / count, .launch_ms = (launched - begin) / count};
  }
  std::int64_t launches() const { return arm_.launches(); }
  void end() {
    arm_.finish(step_ - 1);
    parts_.scope.enter(Phase::teardown_graph, arm_.name(), step_ - 1);
    arm_.drop_graphs();
  }

 private:
  void run() {
    // In the step that captures, every arm of a case has the inputs of the capture.
    arm_.run(step_, inputs_[static_cast<std::size_t>(step_ % parts_.config.steps)]);
    ++step_;
  }

  const CaseParts& parts_;
  const std::vector<StepInput>& inputs_;
  Arm arm_;
  std::int64_t step_ = 0;
};

}  // namespace

void run_paired_blocks(const CaseParts& parts, const std::vector<StepInput>& inputs,
                       const std::vector<fixtures::NamedTensor>& eager) {
  const bool modelled = capture::modelled_ms().has_value();
  const std::int64_t blocks = modelled ? kModelledBlocks : kTimedBlocks,
                     steps = modelled ? kModelledBlockSteps : kBlockSteps;
  CountedCollectives collectives(parts, "paired");
  TimedArm eager_arm(parts, inputs, "paired_eager", "none", {});
  TimedArm graph_arm(parts, inputs, "paired_graph", parts.config.engine.impl, eager);
  for (std::int64_t block = 0; block < blocks; ++block) {
    const bool graph_first = block % 2 == 1;
    const std::int64_t launches = graph_arm.launches();
    BlockTimes of_eager, of_graph;
    if (graph_first) of_graph = graph_arm.time(steps);
    of_eager = eager_arm.time(steps);
    if (!graph_first) of_graph = graph_arm.time(steps);
    parts.scope.write(record::PairedBlockLine{.block = block,
                                              .blocks = blocks,
                                              .steps = steps,
                                              .launches = graph_arm.launches() - launches,
                                              .first = graph_first ? "graph" : "eager",
                                              .clock = modelled ? "model" : "wall",
                                              .eager_ms = of_eager.wall_ms,
                                              .eager_launch_ms = of_eager.launch_ms,
                                              .graph_ms = of_graph.wall_ms,
                                              .graph_launch_ms = of_graph.launch_ms});
  }
  collectives.write();
  eager_arm.end();
  graph_arm.end();
  parts.device.synchronize();
}

}  // namespace graphproof::suites
