#include "suites/arms/soak.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "fixtures/device/resident.h"
#include "fixtures/inspect/host_copies.h"
#include "fixtures/inspect/tensor_digest.h"
#include "fixtures/tensors/torch.h"
#include "suites/arms/solo.h"
#include "suites/case/arm_lines.h"
#include "suites/case/learning_rate.h"
#include "workloads/engines/capture/executables.h"
#include "workloads/engines/shape_buckets.h"
#include "workloads/faults/plant.h"
#include "workloads/soak/soak_plan.h"
#include "workloads/training/lengths.h"

namespace graphproof::suites {
namespace {

using fixtures::NamedTensor;

// Inputs are used in turn. They are made ahead, because a copy from the host waits for the stream.
// With another learning rate and other parameters no two steps compute the same.
constexpr std::int64_t kInputs = 16;

/// The inputs of both jobs.
class SoakInputs {
 public:
  explicit SoakInputs(const CaseParts& parts) {
    const StepConfig& config = parts.config;
    const at::Device device = parts.device.torch_device();
    if (config.shape_buckets > 0)
      lengths_ = workloads::length_schedule(config.model.seq_length, config.shape_buckets,
                                            config.engine.warmup_steps,
                                            workloads::length_unit(config.layout));
    const std::int64_t count = lengths_ ? std::ssize(lengths_->steps) : kInputs;
    for (std::int64_t step = 0; step < count; ++step)
      batches_.push_back(
          lengths_ ? workloads::make_uneven_batch(config.model, config.layout, *lengths_,
                                                  config.seed, step, device)
                   : workloads::make_batch(config.model, config.layout, config.seed, step, device));
    for (std::int64_t i = 0; i < config.evaluations(); ++i)
      unseen_.push_back(
          workloads::make_batch(config.model, config.layout, config.seed, count + i, device));
  }

  const workloads::Batch& batch(std::int64_t place) const { return batches_[at(place)]; }
  /// The lengths of the steps; nothing if all have the same one.
  const std::optional<workloads::LengthSchedule>& lengths() const { return lengths_; }
  /// The longest microbatch of a step on any rank. REQUIRES: lengths().
  std::int64_t longest(const workloads::ModelConfig& model, std::int64_t place) const {
    return workloads::longest_of(model, *lengths_, static_cast<std::int64_t>(at(place)));
  }
  /// What a step is padded to. REQUIRES: lengths().
  std::int64_t padded_to(const workloads::ModelConfig& model, std::int64_t place) const {
    return lengths_->steps[at(place)].value_or(longest(model, place));
  }
  const std::vector<workloads::Batch>& unseen() const { return unseen_; }

 private:
  std::size_t at(std::int64_t place) const {
    return static_cast<std::size_t>(place) % batches_.size();
  }

  std::optional<workloads::LengthSchedule> lengths_;
  std::vector<workloads::Batch> batches_, unseen_;
};

/// One of the two jobs. Used from one thread, with the case's stream current.
class SoakJob {
 public:
  SoakJob(const CaseParts& parts, const SoakInputs& inputs, std::string name, std::string impl)
      : parts_(parts),
        inputs_(inputs),
        plan_(parts.config.soak_steps),
        name_(std::move(name)),
        graphs_(engines::traits_of(impl).captures()),
        config_(parts.config.engine),
        device_(parts.device) {
    config_.impl = std::move(impl);
    if (parts.config.exec_update && graphs_) config_.executables = &executables_;
    parts_.scope.enter(Phase::build, name_, 0);
    release_caches();
    write_memory("before", 0);
    const StepConfig& config = parts.config;
    step_ =
        std::make_unique<workloads::TrainStep>(config.model, config.layout, device_, config.seed,
                                               faults::plant(config.fault), config.rng_backend);
  }

  const std::string& name() const { return name_; }

  /// Runs all steps of a cycle and returns their results.
  Snapshot run(std::int64_t cycle) {
    make_engine();
    std::optional<workloads::Checkpoint> checkpoint;
    for (std::int64_t place = 0; place < plan_.cycle_steps(); ++place) {
      const std::int64_t index = cycle * plan_.cycle_steps() + place;
      if (place == plan_.saved()) {
        evaluate(index);
        checkpoint.emplace(*step_);
      }
      if (place == plan_.loaded()) {
        before_load_ = params_digest(fixtures::on_host(engine_->outputs()));
        checkpoint->load_into(*step_);
        checkpoint.reset();
        ++loads_;
      }
      run_step(place, index);
      if (!plan_.sampled(place)) continue;
      parts_.device.synchronize(parts_.stream);
      write_memory("step", index);
    }
    std::vector<NamedTensor> tensors = engine_->outputs();
    const auto masks = step_->masks();
    tensors.insert(tensors.end(), masks.begin(), masks.end());
    return fixtures::on_host(tensors);
  }

  /// Writes the line of a cycle that left `results`, destroys its graphs, and writes what memory is
  /// left then.
  void end(std::int64_t cycle, const Snapshot& results) {
    const std::int64_t last = plan_.last_step(cycle);
    write_cycle(cycle, last, results);
    if (graphs_) write_exec_updates(parts_, name_, "soak", last, device_);
    parts_.scope.enter(Phase::teardown_graph, name_, last);
    engine_->drop_graphs();
    buckets_ = nullptr;
    engine_.reset();
    device_.forget_graphs();
    release_caches();
    write_memory("returned", last);
  }

 private:
  void make_engine() {
    if (graphs_ && inputs_.lengths()) {
      auto buckets = std::make_unique<engines::ShapeBuckets>(
          config_, device_, parts_.stream, *step_, nullptr,
          engines::ShapeBuckets::Buckets{inputs_.lengths()->buckets, parts_.config.shape_buckets});
      buckets_ = buckets.get();
      engine_ = std::move(buckets);
    } else {
      engine_ = engines::make_engine(config_, device_, parts_.stream, *step_, nullptr);
    }
  }

  void run_step(std::int64_t place, std::int64_t index) {
    const StepConfig& config = parts_.config;
    // The step of the capture belongs to the warm-up, whose limit of time is that of a capture.
    parts_.scope.enter(!graphs_                         ? Phase::eager
                       : place <= config.first_replay() ? Phase::warmup
                                                        : Phase::replay,
                       name_, index);
    const workloads::Batch& batch = inputs_.batch(place);
    const double learning_rate = learning_rate_schedule(config.model.optimizer).at(index);
    if (buckets_) {
      buckets_->step(batch, learning_rate, inputs_.longest(config.model, place));
    } else if (inputs_.lengths()) {
      const workloads::Batch padded =
          workloads::padded(batch, inputs_.padded_to(config.model, place),
                            /*filler=*/config.model.vocab - 1, step_->faults());
      engine_->step(workloads::own_part(padded, config.layout), learning_rate);
    } else {
      engine_->step(batch, learning_rate);
    }
  }

  void evaluate(std::int64_t index) {
    for (const workloads::Batch& batch : inputs_.unseen()) {
      parts_.scope.enter(graphs_ ? Phase::warmup : Phase::eager, name_, index);
      engine_->evaluate(batch);
      ++evaluations_;
    }
  }

  void release_caches() {
    flush_communicators(parts_);
    parts_.device.synchronize();
    parts_.device.empty_cache();
  }

  void write_memory(const char* when, std::int64_t step) {
    const fixtures::ProcessHandles handles = fixtures::process_handles();
    record::MemoryLine line = memory_line(parts_, name_, when, step);
    line.threads = handles.threads;
    line.files = handles.files;
    line.regions = handles.regions;
    parts_.scope.write(line);
  }

  static std::string params_digest(const Snapshot& results) {
    std::vector<NamedTensor> params;
    for (const NamedTensor& one : results)
      if (one.name.starts_with("param:")) params.push_back(one);
    return fixtures::digest(params);
  }

  void write_cycle(std::int64_t cycle, std::int64_t step, const Snapshot& results) {
    record::CycleLine line{.arm = name_,
                           .cycle = cycle,
                           .step = step,
                           .launches = device_.counts().replays,
                           .captures = device_.counts().captures_begun,
                           .evaluations = evaluations_,
                           .loads = loads_,
                           .losses = {},
                           .params = params_digest(results),
                           .params_before_load = before_load_};
    for (const NamedTensor& one : results) {
      if (one.name != "losses") continue;
      const at::Tensor losses = one.tensor.to(at::kDouble).contiguous();
      line.losses.assign(losses.const_data_ptr<double>(),
                         losses.const_data_ptr<double>() + losses.numel());
    }
    parts_.scope.write(line);
  }

  const CaseParts& parts_;
  const SoakInputs& inputs_;
  const soak::Plan plan_;
  const std::string name_;
  const bool graphs_;
  engines::EngineConfig config_;
  engines::Executables executables_;  // of the cycle before
  WatchedDevice device_;
  std::unique_ptr<workloads::TrainStep> step_;
  std::unique_ptr<engines::Engine> engine_;   // of this cycle
  engines::ShapeBuckets* buckets_ = nullptr;  // engine_, if its lengths change
  std::int64_t evaluations_ = 0, loads_ = 0;
  std::string before_load_;  // of the parameters that the last load replaced
};

/// The results of the eager job at the end of each cycle. Their memory is allocated at the end of
/// the first one, ahead of what is judged, so that it does not look as if the job lost it.
class EagerResults {
 public:
  void keep(std::int64_t cycle, const Snapshot& results) {
    if (cycle == 0)
      for (std::int64_t i = 0; i < soak::kCycles; ++i) {
        Snapshot& room = kept_.emplace_back();
        for (const NamedTensor& one : results) room.push_back({one.name, one.tensor.clone()});
      }
    Snapshot& room = kept_[static_cast<std::size_t>(cycle)];
    for (std::size_t i = 0; i < room.size(); ++i) room[i].tensor.copy_(results[i].tensor);
  }
  const Snapshot& of(std::int64_t cycle) const { return kept_[static_cast<std::size_t>(cycle)]; }

 private:
  std::vector<Snapshot> kept_;
};

}  // namespace

void run_soak(const CaseParts& parts) {
  const c10::StreamGuard guard(parts.stream);
  const SoakInputs inputs(parts);
  CountedCollectives collectives(parts, "soak");
  EagerResults left;
  {
    SoakJob eager(parts, inputs, "soak_eager", "none");
    for (std::int64_t cycle = 0; cycle < soak::kCycles; ++cycle) {
      const Snapshot results = eager.run(cycle);
      left.keep(cycle, results);
      eager.end(cycle, results);
    }
  }
  SoakJob graph(parts, inputs, "soak_graph", parts.config.engine.impl);
  for (std::int64_t cycle = 0; cycle < soak::kCycles; ++cycle) {
    const Snapshot right = graph.run(cycle);
    const std::int64_t last = soak::Plan(parts.config.soak_steps).last_step(cycle);
    parts.scope.enter(Phase::compare, graph.name(), last);
    write_comparison(parts, "soak_eager", graph.name(), "soak", last, "fresh", left.of(cycle),
                     right);
    graph.end(cycle, right);
  }
  collectives.write();
}

}  // namespace graphproof::suites
