#include "suites/arms/solo.h"

#include <algorithm>
#include <chrono>

#include "fixtures/comm/collectives.h"
#include "fixtures/comm/torch_group.h"
#include "fixtures/tensors/torch.h"
#include "suites/case/arm_lines.h"

namespace graphproof::suites {
namespace {

using Clock = std::chrono::steady_clock;

// The head start of a step relative to its slowest launch, so that the host stays ahead of the
// device also if it is disturbed.
constexpr double kHeadStartFactor = 2;

double ms_since(Clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
}

/// Inputs with which nothing was captured; those of the capture if there are no others.
const StepInput& other_inputs(const std::vector<StepInput>& inputs) {
  const auto other = std::find_if(inputs.begin(), inputs.end(),
                                  [](const StepInput& input) { return input.word != "capture"; });
  return other == inputs.end() ? inputs.front() : *other;
}

/// The arm that has run the same steps, its results, and the name of the comparison.
struct Repeated {
  std::string arm, compared;
  const History& left;
};

class SoloArm {
 public:
  SoloArm(const CaseParts& parts, std::string name, std::string impl, Repeated repeated,
          std::vector<fixtures::NamedTensor> eager = {})
      : parts_(parts),
        name_(std::move(name)),
        impl_(std::move(impl)),
        repeated_(std::move(repeated)),
        eager_outputs_(std::move(eager)) {}

  void run(const std::vector<StepInput>& inputs) {
    release_caches();
    write_memory("before", 0);
    {
      Arm arm(parts_, name_, impl_, Watch::free, eager_outputs_);
      write_memory("built", 0);
      if (arm.graphs()) {
        parts_.scope.boundary(Phase::capture);
        arm.keep_nodes();
      }
      const std::int64_t last = run_steps(arm, inputs);
      arm.finish(last);
      arm.vote_if_not_captured();
      if (arm.graphs()) {
        arm.capture_again(last + 1, other_inputs(inputs));
        // The driver keeps what it took for a second set of graphs beside the first.
        parts_.device.synchronize();
        write_memory("captured_again", 0);
      }
      parts_.scope.enter(Phase::teardown_graph, name_, last);
      arm.drop_graphs();
    }
    parts_.device.synchronize();
    write_memory("dropped", 0);
    release_caches();
    write_memory("returned", 0);
  }

 private:
  /// Returns the index of the last step.
  std::int64_t run_steps(Arm& arm, const std::vector<StepInput>& inputs) {
    const auto input = [&](std::int64_t step) -> const StepInput& {
      // In the step that captures, every arm of a case has the inputs of the capture. Later steps
      // use the inputs in turn.
      return inputs[static_cast<std::size_t>(step % parts_.config.steps)];
    };
    const std::int64_t steps = std::max(parts_.config.first_replay() + kSoloSteadySteps,
                                        parts_.config.steps + 1 + kSoloTimedSteps);
    CountedCollectives collectives(parts_, name_);
    double slowest_launch_ms = 0;
    std::int64_t step = 0;
    for (; step < steps; ++step) {
      const auto begin = Clock::now();
      arm.run(step, input(step));
      const double launch_ms = ms_since(begin);
      parts_.device.synchronize(parts_.stream);
      const double wall_ms = ms_since(begin);
      parts_.scope.write(record::TimingLine{
          .arm = name_, .step = step, .wall_ms = wall_ms, .launch_ms = launch_ms});
      write_memory("step", step);
      if (step < parts_.config.steps) compare(arm, step, input(step), wall_ms);
      if (parts_.config.rolls_out_after(step) &&
          (step - parts_.config.first_replay()) % kSoloRolloutInterval == 0)
        arm.roll_out();
      if (step > parts_.config.first_replay())
        slowest_launch_ms = std::max(slowest_launch_ms, launch_ms);
    }
    if (measure_busy(arm, step, input(step), slowest_launch_ms)) ++step;
    collectives.write();
    return step - 1;
  }

  void compare(Arm& arm, std::int64_t step, const StepInput& input, double ms) {
    const Snapshot right = arm.results(step, input, ms);
    if (const Snapshot* left = repeated_.left.at(step))
      write_comparison(parts_, repeated_.arm, name_, repeated_.compared, step, input.word, *left,
                       right);
  }

  /// Runs one more step and writes the line `busy`. Returns whether it ran: only on a device with a
  /// clock.
  bool measure_busy(Arm& arm, std::int64_t step, const StepInput& input, double slowest_launch_ms) {
    const c10::StreamGuard guard(parts_.stream);
    if (!parts_.device.busy_ms(0, [] {})) return false;
    // The device time is measured in a step of its own, because the head start changes the host's
    // time. One step is enough, because the device time of steps varies little.
    const double head_start_ms = kHeadStartFactor * slowest_launch_ms;
    double launch_ms = 0;
    const auto device_ms = parts_.device.busy_ms(head_start_ms, [&] {
      const auto begin = Clock::now();
      arm.run(step, input);
      launch_ms = ms_since(begin);
    });
    // If the host was slower than the head start, the device was idle at times, and the result is
    // no busy time.
    if (device_ms && launch_ms <= head_start_ms)
      parts_.scope.write(record::BusyLine{.arm = name_, .step = step, .device_ms = *device_ms});
    return true;
  }

  void release_caches() {
    flush_communicators(parts_);
    parts_.device.synchronize();
    parts_.device.empty_cache();
  }

  void write_memory(const char* when, std::int64_t step) {
    parts_.scope.write(memory_line(parts_, name_, when, step));
  }

  const CaseParts& parts_;
  const std::string name_, impl_;
  const Repeated repeated_;
  const std::vector<fixtures::NamedTensor> eager_outputs_;
};

}  // namespace

void run_solo_eager(const CaseParts& parts, const std::vector<StepInput>& inputs,
                    const History& eager_a) {
  SoloArm(parts, "solo_eager", "none",
          {.arm = "eager_a", .compared = "eager_repeats", .left = eager_a})
      .run(inputs);
}

void run_solo_graph(const CaseParts& parts, const std::vector<StepInput>& inputs,
                    const History& lockstep_graph, std::vector<fixtures::NamedTensor> eager) {
  SoloArm(parts, "solo_graph", parts.config.engine.impl,
          {.arm = "lockstep_graph", .compared = "graph_repeats", .left = lockstep_graph},
          std::move(eager))
      .run(inputs);
}

void flush_communicators(const CaseParts& parts) {
  if (!parts.groups) return;
  const c10::StreamGuard guard(parts.stream);
  const auto in_every_group = [&](const auto& act) {
    for (const comm::GroupLayout& group : process_groups(parts.config.layout))
      if (parts.groups->member(group.name) && parts.groups->size(group.name) > 1) act(group);
    parts.device.synchronize(parts.stream);
  };
  // The kind for which the group is connected; the other kind would set up new connections.
  const auto collective = [&](const comm::GroupLayout& group) {
    const at::Tensor one = at::zeros({1}, at::TensorOptions().device(parts.device.torch_device()));
    group.point_to_point ? comm::ring_shift(one, 1, group.name)
                         : comm::all_reduce_(one, group.name);
  };
  in_every_group(collective);
  bool by_torch = false;
  in_every_group([&](const comm::GroupLayout& group) {
    const auto torch = comm::torch_group(group.name, parts.device.torch_device().type());
    if (torch) comm::wait_for_watchdog(torch);
    by_torch |= torch != nullptr;
  });
  // Memory that PyTorch's watchdog has released is freed by the thread of the next collective.
  if (by_torch) in_every_group(collective);
}

}  // namespace graphproof::suites
