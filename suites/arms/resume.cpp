#include "suites/arms/resume.h"

#include "fixtures/inspect/host_copies.h"
#include "fixtures/tensors/torch.h"
#include "suites/case/arm_lines.h"
#include "suites/case/learning_rate.h"
#include "workloads/faults/plant.h"

namespace graphproof::suites {
namespace {

constexpr std::uint64_t kOtherSeed = 1;  // added to the seed of the run

Snapshot left_by(engines::Engine& engine, workloads::TrainStep& step) {
  std::vector<fixtures::NamedTensor> tensors = engine.outputs();
  for (const fixtures::NamedTensor& mask : step.masks()) tensors.push_back(mask);
  return fixtures::on_host(tensors);
}

}  // namespace

void run_resumed(const CaseParts& parts, const std::vector<StepInput>& inputs,
                 std::span<const Snapshot> left, const workloads::Checkpoint& checkpoint) {
  const StepConfig& config = parts.config;
  parts.scope.enter(Phase::build, "resumed", config.resume_step());
  CountedCollectives collectives(parts, "resumed");
  const c10::StreamGuard guard(parts.stream);
  workloads::TrainStep step(config.model, config.layout, parts.device, config.seed + kOtherSeed,
                            faults::plant(config.fault), config.rng_backend);
  const auto engine =
      engines::make_engine(config.engine, parts.device, parts.stream, step, nullptr);
  for (const char* name : {"resumed", "loaded"}) {
    checkpoint.load_into(step);
    for (std::int64_t index = config.resume_step(); index < config.steps; ++index) {
      parts.scope.enter(Phase::replay, name, index);
      const StepInput& input = inputs[static_cast<std::size_t>(index)];
      engine->step(input.batch, learning_rate_schedule(config.model.optimizer).at(index));
      parts.device.synchronize(parts.stream);
      const Snapshot& before = left[static_cast<std::size_t>(index)];
      if (!before.empty())
        write_comparison(parts, "lockstep_graph", name, name, index, input.word, before,
                         left_by(*engine, step));
    }
  }
  parts.scope.write(record::ResumedLine{
      .arm = "resumed", .step = config.resume_step(), .replays = engine->counters().replays});
  engine->drop_graphs();
  collectives.write();
}

}  // namespace graphproof::suites
