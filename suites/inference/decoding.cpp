#include "suites/inference/decoding.h"

#include <utility>

#include "fixtures/tensors/torch.h"
#include "suites/case/arm_lines.h"
#include "suites/inference/inference_job.h"
#include "suites/inference/whole_sequences.h"
#include "workloads/faults/plant.h"

namespace graphproof::suites {
namespace {

/// The model of an arm, built with the case's stream current.
std::unique_ptr<workloads::TrainStep> make_model(const CaseParts& parts, const std::string& arm) {
  parts.scope.enter(Phase::build, arm, 0);
  const c10::StreamGuard guard(parts.stream);
  const StepConfig& config = parts.config;
  return std::make_unique<workloads::TrainStep>(config.model, config.layout, parts.device,
                                                config.seed, faults::plant(config.fault),
                                                config.rng_backend);
}

}  // namespace

/// One arm, with its own model.
struct DecodingArm {
  DecodingArm(const CaseParts& parts, InferenceArm arm)
      : step(make_model(parts, arm.name)), job(parts, *step, std::move(arm)) {}

  const std::unique_ptr<workloads::TrainStep> step;
  InferenceJob job;
};

DecodingArms::DecodingArms(const CaseParts& parts) : parts_(parts) {}
DecodingArms::~DecodingArms() = default;

InferenceJob& DecodingArms::arm(InferenceArm arm) {
  kept_.push_back(std::make_unique<DecodingArm>(parts_, std::move(arm)));
  return kept_.back()->job;
}

void DecodingArms::run() {
  run_sections(parts_, [this] { run_eager(); }, [this] { run_lockstep(); }, [this] { run_free(); });
}

void DecodingArms::run_eager() {
  CountedCollectives collectives(parts_, "eager");
  InferenceJob& first = arm({.name = "eager_a"});
  InferenceJob& second = arm({.name = "eager_b"});
  InferenceJob& padded = arm({.name = "padded_eager", .padding = Padding::others});
  std::vector<Snapshot> results;
  for (std::int64_t step = 0; step < parts_.config.steps; ++step) {
    Snapshot left = first.run(step);
    write_comparison(parts_, first.name(), second.name(), "eager_repeats", step, "fresh", left,
                     second.run(step));
    write_comparison(parts_, first.name(), padded.name(), "padding", step, "fresh", left,
                     padded.run(step));
    results.push_back(sampled_results(std::move(left)));
  }
  write_sequences(parts_, first, results);
  collectives.write();
  kept_.clear();
}

void DecodingArms::run_lockstep() {
  const std::int64_t steps = parts_.config.steps;
  InferenceJob& eager = arm({.name = "lockstep_eager"});
  InferenceJob& graph = arm({.name = "lockstep_graph", .graph = true, .padding = Padding::others});
  std::vector<Snapshot> last;
  {
    parts_.scope.boundary(Phase::capture);  // the next vote of all ranks, also after a failure
    CountedCollectives collectives(parts_, "lockstep");
    graph.capture();
    for (std::int64_t step = 0; step < steps; ++step) {
      // Freed memory is overwritten halfway, so that a replay that still reads it differs.
      if (step == steps / 2)
        parts_.scope.write(record::ScribbledLine{
            .arm = graph.name(), .step = step, .bytes = parts_.device.overwrite_free_memory()});
      const Snapshot left = eager.run(step);
      Snapshot right = graph.run(step);
      parts_.scope.enter(Phase::compare, graph.name(), step);
      write_comparison(parts_, eager.name(), graph.name(), "lockstep", step, "fresh", left, right);
      if (step == steps - 1) last.push_back(std::move(right));
    }
    collectives.write();
  }
  InferenceJob& again = arm({.name = "graph_b", .graph = true, .padding = Padding::others});
  parts_.scope.boundary(Phase::capture);
  CountedCollectives collectives(parts_, again.name());
  again.capture();
  for (std::int64_t step = 0; step < steps; ++step) {
    const Snapshot right = again.run(step);
    if (step < steps - 1) continue;
    parts_.scope.enter(Phase::compare, again.name(), step);
    write_comparison(parts_, graph.name(), again.name(), "graph_repeats", step, "fresh",
                     last.front(), right);
  }
  collectives.write();
}

void DecodingArms::run_free() {
  const std::int64_t last = parts_.config.steps - 1;
  CountedCollectives collectives(parts_, "free_run");
  InferenceJob& eager = arm({.name = "free_eager", .watch = Watch::free});
  for (std::int64_t step = 0; step <= last; ++step) eager.run(step);
  const Snapshot left = eager.finish(last);
  InferenceJob& graph =
      arm({.name = "free_graph", .graph = true, .padding = Padding::others, .watch = Watch::free});
  parts_.scope.boundary(Phase::capture);
  graph.capture();
  for (std::int64_t step = 0; step <= last; ++step) graph.run(step);
  const Snapshot right = graph.finish(last);
  parts_.scope.enter(Phase::compare, graph.name(), last);
  write_comparison(parts_, eager.name(), graph.name(), "free_run", last, "fresh", left, right);
  collectives.write();
}

void DecodingArms::drop_graphs() {
  for (const auto& arm : kept_) arm->job.drop_graphs();
}

void DecodingArms::drop_buffers() { kept_.clear(); }

}  // namespace graphproof::suites
