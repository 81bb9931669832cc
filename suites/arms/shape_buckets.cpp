#include "suites/arms/shape_buckets.h"

#include <set>
#include <utility>
#include <vector>

#include "fixtures/inspect/host_copies.h"
#include "fixtures/tensors/torch.h"
#include "suites/case/arm_lines.h"
#include "suites/case/learning_rate.h"
#include "suites/case/reference.h"
#include "workloads/engines/capture/executables.h"
#include "workloads/engines/shape_buckets.h"
#include "workloads/faults/plant.h"
#include "workloads/training/lengths.h"

namespace graphproof::suites {
namespace {

/// Sums what the captures of a step added to the pools.
class CapturedBytes final : public engines::Observer {
 public:
  void after_capture(const engines::CaptureReport& report,
                     const std::vector<fixtures::NamedTensor>&) override {
    bytes_ += report.pool_bytes;
  }
  std::int64_t take() { return std::exchange(bytes_, 0); }

 private:
  std::int64_t bytes_ = 0;
};

/// The schedule and the batches of its steps. They are made in advance, because a copy from the
/// host waits for the stream.
struct UnevenSteps {
  explicit UnevenSteps(const CaseParts& parts)
      : schedule(workloads::length_schedule(
            parts.config.model.seq_length, parts.config.shape_buckets,
            parts.config.engine.warmup_steps, workloads::length_unit(parts.config.layout))) {
    const StepConfig& config = parts.config;
    for (std::int64_t step = 0; step < count(); ++step) {
      longest.push_back(workloads::longest_of(config.model, schedule, step));
      batches.push_back(workloads::make_uneven_batch(
          config.model, config.layout, schedule, config.seed, step, parts.device.torch_device()));
    }
  }
  std::int64_t count() const { return static_cast<std::int64_t>(schedule.steps.size()); }

  workloads::LengthSchedule schedule;
  std::vector<std::int64_t> longest;
  std::vector<workloads::Batch> batches;
};

/// Two copies of a step with one seed, which run the schedule.
class BucketArms {
 public:
  BucketArms(const CaseParts& parts, const UnevenSteps& steps)
      : parts_(parts),
        steps_(steps),
        device_(parts.device),
        eager_step_(step(parts.device)),
        graph_step_(step(device_)),
        eager_(engines::make_engine(eager_config(), parts.device, parts.stream, *eager_step_,
                                    nullptr)),
        graph_(graph_config(), device_, parts.stream, *graph_step_, &captured_,
               {steps.schedule.buckets, parts.config.shape_buckets}),
        pool_bytes_before_(parts.device.memory().pool) {}

  /// Runs step `index` in both. Waits only for captures and evictions.
  void run(std::int64_t index) {
    const StepConfig& config = parts_.config;
    const auto at = static_cast<std::size_t>(index);
    const double learning_rate = learning_rate_schedule(config.model.optimizer).at(index);
    parts_.scope.enter(Phase::replay, "buckets_graph", index);
    graph_.step(steps_.batches[at], learning_rate, steps_.longest[at]);
    parts_.scope.enter(Phase::eager, "buckets_eager", index);
    const std::int64_t length = steps_.schedule.steps[at].value_or(steps_.longest[at]);
    const workloads::Batch padded =
        workloads::padded(steps_.batches[at], length, other_filler(), eager_step_->faults());
    eager_->step(workloads::own_part(padded, config.layout), learning_rate);
  }

  void compare(const char* name, std::int64_t index) {
    parts_.device.synchronize(parts_.stream);
    parts_.scope.enter(Phase::compare, "buckets_graph", index);
    write_comparison(parts_, "buckets_eager", "buckets_graph", name, index, "fresh",
                     fixtures::on_host(with_masks(eager_->outputs(), *eager_step_)),
                     fixtures::on_host(with_masks(graph_.outputs(), *graph_step_)));
  }

  void write_step(std::int64_t index) {
    const engines::ShapeBuckets::Step& ran = graph_.latest();
    const GraphCounts& counts = device_.counts();
    parts_.scope.write(
        record::BucketLine{.arm = "buckets_graph",
                           .step = index,
                           .longest = steps_.longest[static_cast<std::size_t>(index)],
                           .length = ran.length,
                           .replayed = ran.replayed,
                           .captures = counts.captures_begun,
                           .replays = counts.replays,
                           .resident = graph_.resident(),
                           .evicted = ran.evicted,
                           .captured_bytes = captured_.take(),
                           .pool_bytes = parts_.device.memory().pool - pool_bytes_before_});
  }

  /// Destroys the graphs and writes how many were evicted while the device still ran them, which
  /// can only happen in a free run.
  void drop(const char* run, std::int64_t last) {
    parts_.scope.write(record::EvictionsLine{.arm = "buckets_graph",
                                             .run = run,
                                             .step = last,
                                             .in_flight = graph_.counters().drops_in_flight});
    write_exec_updates(parts_, "buckets_graph", run, last, device_);
    parts_.device.synchronize();
    graph_.drop_graphs();
  }

 private:
  std::unique_ptr<workloads::TrainStep> step(capture::Device& device) const {
    const StepConfig& config = parts_.config;
    return std::make_unique<workloads::TrainStep>(config.model, config.layout, device, config.seed,
                                                  faults::plant(config.fault), config.rng_backend);
  }
  /// What the padding of the eager arm holds: the largest token, where the graphs have token 0.
  /// The sums by which recompute is compared are those of padding too, so with recompute both have
  /// the same, and D38 alone shows that padding has no influence.
  std::int64_t other_filler() const {
    return parts_.config.model.recompute.any() ? 0 : parts_.config.model.vocab - 1;
  }
  static std::vector<fixtures::NamedTensor> with_masks(std::vector<fixtures::NamedTensor> tensors,
                                                       workloads::TrainStep& step) {
    for (const fixtures::NamedTensor& mask : step.masks()) tensors.push_back(mask);
    return tensors;
  }
  engines::EngineConfig graph_config() {
    engines::EngineConfig config = parts_.config.engine;
    if (parts_.config.exec_update) config.executables = &executables_;
    return config;
  }
  engines::EngineConfig eager_config() const {
    engines::EngineConfig config = parts_.config.engine;
    config.impl = "none";
    return config;
  }

  const CaseParts& parts_;
  const UnevenSteps& steps_;
  engines::Executables executables_;  // of evicted lengths
  WatchedDevice device_;
  std::unique_ptr<workloads::TrainStep> eager_step_, graph_step_;
  CapturedBytes captured_;
  std::unique_ptr<engines::Engine> eager_;
  engines::ShapeBuckets graph_;
  const std::int64_t pool_bytes_before_;  // of other live arms
};

Snapshot losses_and_gradients(workloads::TrainStep& step) {
  std::vector<fixtures::NamedTensor> tensors = step.gradients();
  tensors.push_back({"losses", step.losses()});
  return fixtures::on_host(tensors);
}

/// Compares the first step of each bucket, with the initial weights, once padded and once with each
/// microbatch at its own length. Nothing is dropped: masks are drawn for a whole tensor, so those
/// of other shapes are others.
void write_padding(const CaseParts& parts, const UnevenSteps& steps) {
  StepConfig config = parts.config;
  config.model.dropout = 0;
  const ReferenceBound bound = reference_bound(config);
  workloads::TrainStep step(config.model, config.layout, parts.device, config.seed,
                            faults::plant(config.fault), config.rng_backend);
  std::set<std::int64_t> seen;
  for (std::size_t index = 0; index < steps.batches.size(); ++index) {
    const auto& bucket = steps.schedule.steps[index];
    if (!bucket || !seen.insert(*bucket).second) continue;
    const auto number = static_cast<std::int64_t>(index);
    parts.scope.enter(Phase::eager, "padding", number);
    const workloads::Batch& batch = steps.batches[index];
    const auto run = [&](const workloads::Batch& whole) {
      step.forward_backward(workloads::own_part(whole, config.layout));
    };
    run(batch);
    const Snapshot bare = losses_and_gradients(step);
    run(workloads::padded(batch, *bucket, config.model.vocab - 1, step.faults()));
    const Snapshot filled = losses_and_gradients(step);
    std::vector<ReferencePair> pairs;
    for (std::size_t i = 0; i < bare.size(); ++i)
      pairs.push_back({bare[i].name, filled[i].tensor, bare[i].tensor});
    std::vector<std::int64_t> lengths;
    for (const at::Tensor& tokens : batch.tokens) lengths.push_back(tokens.size(1));
    parts.scope.write(record::PaddingLine{.step = number,
                                          .length = *bucket,
                                          .lengths = std::move(lengths),
                                          .distance = distance_of(pairs, bound)});
  }
}

}  // namespace

void run_shape_buckets(const CaseParts& parts) {
  const c10::StreamGuard guard(parts.stream);
  const UnevenSteps steps(parts);
  CountedCollectives collectives(parts, "buckets");
  write_padding(parts, steps);
  {
    BucketArms arms(parts, steps);
    for (std::int64_t index = 0; index < steps.count(); ++index) {
      arms.run(index);
      arms.compare("buckets", index);
      arms.write_step(index);
    }
    arms.drop("buckets", steps.count() - 1);
  }
  BucketArms free_run(parts, steps);
  for (std::int64_t index = 0; index < steps.count(); ++index) free_run.run(index);
  free_run.compare("buckets_free_run", steps.count() - 1);
  free_run.drop("buckets_free_run", steps.count() - 1);
  collectives.write();
}

}  // namespace graphproof::suites
