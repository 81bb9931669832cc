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

enum class Tokens { spread, pulled, as_routed };

/// Steps whose tokens are spread over all ranks, two whose tokens are pulled to the experts of the
/// first one, and one whose routers decide. Routers alone might send nearly all tokens to one rank
/// ahead of the capture, and no buffers that have grown to hold those overflow later.
std::vector<StashStep> make_steps(const CaseParts& parts) {
  const workloads::ModelConfig& model = parts.config.model;
  const workloads::Layout& layout = parts.config.layout;
  const std::int64_t tokens =
      model.microbatch_size * layout.own_length(model) / layout.sequence_parts();
  const at::Tensor none = at::zeros({tokens, model.experts}),
                   even = workloads::kStrongestPull *
                          workloads::pull_in_circle(tokens, model.experts, model.topk,
                                                    layout.ep_rank * tokens, model.experts);
  std::vector<StashStep> steps;
  const auto add = [&](Tokens which) {
    const at::Device device = parts.device.torch_device();
    workloads::Batch batch =
        workloads::make_batch(model, layout, parts.config.seed, std::ssize(steps), device);
    for (at::Tensor& pull : batch.expert_pull)
      pull = (which == Tokens::spread ? even : none).to(device);
    if (which == Tokens::pulled) batch = with_expert_pull(batch, model.experts / layout.ep);
    steps.push_back({std::move(batch), which == Tokens::pulled});
  };
  for (std::int64_t step = 0; step < parts.config.engine.warmup_steps + 2; ++step)
    add(Tokens::spread);
  for (const Tokens which : {Tokens::pulled, Tokens::pulled, Tokens::as_routed}) add(which);
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
