#include "suites/arms/paged_stash.h"

#include <utility>
#include <vector>

#include "fixtures/inspect/host_copies.h"
#include "fixtures/inspect/poison.h"
#include "fixtures/tensors/torch.h"
#include "suites/case/arm_lines.h"
#include "suites/case/learning_rate.h"
#include "workloads/engines/capture/executables.h"
#include "workloads/engines/step/paged_stash.h"
#include "workloads/faults/plant.h"

namespace graphproof::suites {
namespace {

/// Poisons all outputs before each replay.
class Poisons final : public engines::Observer {
 public:
  void before_replay(const std::string&, const std::vector<fixtures::NamedTensor>&,
                     const std::vector<fixtures::NamedTensor>& outputs) override {
    fixtures::poison(outputs);
  }
};

struct StashStep {
  workloads::Batch batch;
  bool pulled = false;
};

std::vector<StashStep> make_steps(const CaseParts& parts) {
  const StepConfig& config = parts.config;
  std::vector<StashStep> steps;
  const auto add = [&](bool pulled) {
    workloads::Batch batch = workloads::make_batch(config.model, config.layout, config.seed,
                                                   std::ssize(steps), parts.device.torch_device());
    if (pulled) batch = with_expert_pull(batch, config.model.experts / config.layout.ep);
    steps.push_back({std::move(batch), pulled});
  };
  for (std::int64_t step = 0; step < config.engine.warmup_steps + 2; ++step) add(false);
  for (const bool pulled : {true, true, false}) add(pulled);
  return steps;
}

std::int64_t sum(const std::vector<fixtures::NamedTensor>& ledgers, const std::string& name) {
  for (const fixtures::NamedTensor& ledger : ledgers)
    if (ledger.name == name) return ledger.tensor.sum().item<std::int64_t>();
  return 0;
}

/// A copy of the step whose buffers are limited, and its engine.
class StashArm {
 public:
  StashArm(const CaseParts& parts, const char* name, std::string impl)
      : parts_(parts), name_(name), device_(parts.device) {
    const StepConfig& config = parts.config;
    step_ =
        std::make_unique<workloads::TrainStep>(config.model, config.layout, device_, config.seed,
                                               faults::plant(config.fault), config.rng_backend);
    workloads::ExpertBuffers& buffers = step_->expert_buffers();
    buffers.limit(engines::PagedStash::first_limit(buffers));
    engines::EngineConfig engine = config.engine;
    engine.impl = std::move(impl);
    if (config.exec_update) engine.executables = &executables_;
    engine_ = engines::make_engine(engine, device_, parts.stream, *step_, &poisons_);
  }

  /// Runs step `index`, waits for it, writes its line and returns its results.
  Snapshot run(std::int64_t index, const StashStep& step) {
    const workloads::ExpertBuffers& buffers = step_->expert_buffers();
    const std::int64_t capacity = buffers.rows(), reruns = engine_->counters().reruns;
    parts_.scope.enter(Phase::replay, name_, index);
    engine_->step(step.batch, learning_rate_schedule(parts_.config.model.optimizer).at(index));
    parts_.device.synchronize(parts_.stream);
    const auto ledgers = step_->ledgers();
    parts_.scope.write(record::StashLine{.arm = name_,
                                         .step = index,
                                         .pulled = step.pulled,
                                         .capacity = capacity,
                                         .needed = buffers.needed().item<std::int64_t>(),
                                         .reruns = engine_->counters().reruns - reruns,
                                         .grown = buffers.rows(),
                                         .captures = device_.counts().captures_begun,
                                         .replays = device_.counts().replays,
                                         .assigned = sum(ledgers, "experts:assigned"),
                                         .carried = sum(ledgers, "experts:carried"),
                                         .dropped = sum(ledgers, "experts:dropped")});
    if (engine_->counters().captures > 0)
      write_exec_updates(parts_, name_, "stash", index, device_);
    std::vector<fixtures::NamedTensor> results = engine_->outputs();
    const auto masks = step_->masks();
    results.insert(results.end(), masks.begin(), masks.end());
    return fixtures::on_host(results);
  }
  void drop() { engine_->drop_graphs(); }

 private:
  const CaseParts& parts_;
  const std::string name_;
  engines::Executables executables_;  // of the graphs whose buffers were too small
  WatchedDevice device_;
  Poisons poisons_;
  std::unique_ptr<workloads::TrainStep> step_;
  std::unique_ptr<engines::Engine> engine_;
};

}  // namespace

void run_paged_stash(const CaseParts& parts) {
  const c10::StreamGuard guard(parts.stream);
  CountedCollectives collectives(parts, "stash");
  const std::vector<StashStep> steps = make_steps(parts);
  StashArm eager(parts, "stash_eager", "none"),
      graph(parts, "stash_graph", parts.config.engine.impl);
  for (std::int64_t index = 0; index < std::ssize(steps); ++index) {
    const StashStep& step = steps[static_cast<std::size_t>(index)];
    const Snapshot left = eager.run(index, step), right = graph.run(index, step);
    parts.scope.enter(Phase::compare, "stash_graph", index);
    write_comparison(parts, "stash_eager", "stash_graph", "stash", index, "fresh", left, right);
  }
  parts.device.synchronize();
  graph.drop();
  collectives.write();
}

}  // namespace graphproof::suites
