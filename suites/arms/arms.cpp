#include "suites/arms/arms.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <optional>
#include <stdexcept>

#include "fixtures/inspect/host_copies.h"
#include "fixtures/tensors/torch.h"
#include "suites/arms/evaluation.h"
#include "suites/arms/resume.h"
#include "suites/arms/rollout.h"
#include "suites/case/arm_lines.h"
#include "suites/case/learning_rate.h"
#include "suites/case/reference.h"
#include "workloads/config/precision.h"
#include "workloads/faults/plant.h"
#include "workloads/training/data.h"

namespace graphproof::suites {
namespace {

using fixtures::NamedTensor;

/// The gradients and losses of one step in host memory, and which shard of the full tensor each
/// gradient is. With a loss scale or clipping the gradients are those that the optimizer uses. If
/// second_step_compared(), it is the second step.
struct ReferenceStep {
  Snapshot left;
  std::vector<workloads::Shard> shards;
};
/// Changes each element of the parameters by this part of itself, in a random direction.
void nudge(workloads::TrainStep& step, double part, std::uint64_t seed) {
  const at::NoGradGuard no_grad;
  at::Generator generator = at::detail::createCPUGenerator(seed);
  for (const NamedTensor& parameter : step.parameters()) {
    const at::Tensor signs =
        at::randint(0, 2, parameter.tensor.sizes(), generator, at::TensorOptions(at::kDouble)) * 2 -
        1;
    at::Tensor tensor = parameter.tensor.detach();
    tensor.copy_(tensor.to(at::kDouble) * (1 + part * signs.to(tensor.device())));
  }
}

/// The steps of the comparison, with parameters that are changed by `nudged` of themselves.
ReferenceStep reference_step(const CaseParts& parts, const StepConfig& config, double nudged = 0,
                             std::uint64_t sample = 0) {
  const c10::StreamGuard guard(parts.stream);
  workloads::TrainStep step(config.model, config.layout, parts.device, config.seed,
                            faults::plant(config.fault), config.rng_backend);
  if (nudged > 0) nudge(step, nudged, config.seed + sample);
  step.learning_rate(learning_rate_schedule(config.model.optimizer).at(0));
  const std::int64_t last = second_step_compared(config.model) ? 1 : 0;
  for (std::int64_t index = 0; index <= last; ++index) {
    step.forward_backward(workloads::make_batch(config.model, config.layout, config.seed, index,
                                                parts.device.torch_device()));
    if (index < last || config.model.clip_grad ||
        config.model.precision == workloads::Precision::fp16)
      step.optimizer_step();
  }
  step.gather_gradients();
  parts.device.synchronize(parts.stream);
  std::vector<NamedTensor> tensors = step.gradients();
  tensors.push_back({"losses", step.losses()});
  return {.left = fixtures::on_host(tensors), .shards = step.shards()};
}

const at::Tensor& tensor_named(const Snapshot& tensors, const std::string& name) {
  const auto found = std::find_if(tensors.begin(), tensors.end(),
                                  [&](const NamedTensor& one) { return one.name == name; });
  if (found == tensors.end()) throw std::logic_error("the single-rank model has no " + name);
  return found->tensor;
}

void write_reference(const CaseParts& parts, const std::string& compared,
                     const std::vector<ReferencePair>& pairs, const ReferenceBound& bound,
                     workloads::Precision precision) {
  parts.scope.write(record::ReferenceLine{.compared = compared,
                                          .precision = workloads::name_of(precision),
                                          .distance = distance_of(pairs, bound)});
}

/// The steps of one arm before which work is delayed.
class DelayedSteps {
 public:
  DelayedSteps(const CaseParts& parts, double ms) : parts_(parts), ms_(ms) {}

  /// Delays work on the case's stream, or on all others, before step `step`.
  void delay_work(std::int64_t step, capture::DelayedStreams streams) {
    const c10::StreamGuard guard(parts_.stream);
    streams_ = std::max(streams_, parts_.device.delay_work(streams, ms_));
    steps_.push_back(step);
  }

  /// Writes nothing on a device that cannot delay work.
  void write(const std::string& arm, std::int64_t branches) const {
    if (streams_ > 0)
      parts_.scope.write(record::DelayedStepsLine{
          .arm = arm, .steps = steps_, .ms = ms_, .streams = streams_, .branches = branches});
  }

 private:
  const CaseParts& parts_;
  const double ms_;
  std::int64_t streams_ = 0;
  std::vector<std::int64_t> steps_;
};
// A tensor of few elements, which are sums that cancel, may hardly move in one sample.
constexpr std::uint64_t kRoundingSamples = 3;
// About as long as the host needs for an eager step of a small model on an H200, and for its
// replay.
constexpr double kEagerDelayMs = 10, kReplayDelayMs = 6;
constexpr std::array kDelayedEagerSteps = {std::pair{1, capture::DelayedStreams::others},
                                           std::pair{2, capture::DelayedStreams::current}};

/// Graphs that are made while it lives get delays before their branches.
class DelayedBranches {
 public:
  explicit DelayedBranches(capture::Device& device) : device_(device) {
    device_.delay_graph_branches(true);
  }
  ~DelayedBranches() { device_.delay_graph_branches(false); }
  DelayedBranches(const DelayedBranches&) = delete;
  DelayedBranches& operator=(const DelayedBranches&) = delete;

 private:
  capture::Device& device_;
};

}  // namespace

std::vector<StepInput> make_inputs(const CaseParts& parts) {
  const c10::StreamGuard guard(parts.stream);
  const StepConfig& config = parts.config;
  std::vector<StepInput> inputs;
  for (std::int64_t step = 0; step < config.steps; ++step)
    inputs.push_back({.batch = workloads::make_batch(config.model, config.layout, config.seed, step,
                                                     parts.device.torch_device()),
                      .word = step == config.capture_step() ? "capture" : "fresh"});
  // What padding holds must make no difference, unless a scale follows the largest element of a
  // tensor or of a block, its padding included, as those of numbers with 8 or 4 bits do upstream
  // too.
  constexpr double kPaddingOfGraphs = 3;
  for (StepInput& input : inputs)
    if (config.model.encoder_layers > 0 && !workloads::is_quantized(config.model.precision))
      input.padded_otherwise = workloads::with_image_padding(input.batch, kPaddingOfGraphs);
  const std::int64_t captured = std::min(config.capture_step(), config.steps - 1);
  inputs.push_back(inputs[static_cast<std::size_t>(captured)]);
  inputs.back().word = "capture";
  return inputs;
}

History run_eager(const CaseParts& parts, const std::vector<StepInput>& inputs, Arm& eager_a) {
  CountedCollectives collectives(parts, eager_a.name());
  DelayedSteps delayed(parts, kEagerDelayMs);
  History history;
  for (std::int64_t step = 0; step < parts.config.steps; ++step) {
    for (const auto& [delayed_step, streams] : kDelayedEagerSteps)
      if (step == delayed_step) delayed.delay_work(step, streams);
    history.add(eager_a.run(step, inputs[static_cast<std::size_t>(step)]));
  }
  delayed.write(eager_a.name(), 0);
  collectives.write();
  return history;
}

void run_layout_reference(const CaseParts& parts) {
  parts.scope.enter(Phase::eager, "reference", 0);
  CountedCollectives collectives(parts, "reference");
  StepConfig parallel = parts.config;
  parallel.model.dropout = 0;
  // A dynamic scale starts so high that the first gradients are infinite.
  parallel.model.loss_scaling = workloads::LossScaling::static_;
  StepConfig single = single_rank(parts.config);
  parallel.model.precision = single.model.precision;
  parallel.model.autocast = single.model.autocast;
  // Adam's first update is nearly the gradient's sign. Another order of sums can change the sign of
  // a gradient that is almost zero.
  if (parallel.model.distributed_optimizer)
    parallel.model.optimizer = single.model.optimizer = workloads::OptimizerKind::sgd;
  single.model.cpu_offload = false;  // what it computes must not depend on where activations wait
  const auto [ours, shards] = reference_step(parts, parallel);
  const Snapshot whole = reference_step(parts, single).left;
  const ReferenceBound bound = reference_bound(single);
  std::vector<ReferencePair> losses, gradients;
  const std::int64_t microbatches = parts.config.model.microbatches;
  for (std::size_t i = 0; i < ours.size(); ++i) {
    const auto& [name, tensor] = ours[i];
    const at::Tensor& full = tensor_named(whole, name);
    if (name == "losses")
      losses.push_back({name, tensor,
                        full.narrow(0, parts.config.layout.dp_rank * microbatches, microbatches),
                        full});
    else
      gradients.push_back({name, tensor, own_shard(full, tensor.sizes(), shards[i]), full});
  }
  if (!single.model.fp8_weights && !reference_distance(gradients, bound).within()) {
    // Rounding causes this difference without any layout, where sums cancel or the model is steep.
    // Rounded weights are excluded: one that is rounded to another value changes much more.
    const auto moved_by_rounding = [&](const Snapshot& other) {
      for (ReferencePair& pair : gradients)
        pair.rounding = std::max(pair.rounding,
                                 (tensor_named(whole, pair.name) - tensor_named(other, pair.name))
                                     .abs()
                                     .max()
                                     .item<double>());
    };
    if (single.model.rounds_to_16_bits()) {
      StepConfig exact = single;
      exact.model.precision = workloads::Precision::fp32;
      exact.model.autocast = false;
      moved_by_rounding(reference_step(parts, exact).left);
    }
    for (std::uint64_t sample = 0; sample < kRoundingSamples; ++sample)
      moved_by_rounding(reference_step(parts, single, parameter_rounding(single), sample).left);
  }
  // Only the last stage of a pipeline has losses.
  if (parts.config.layout.last_stage())
    write_reference(parts, "losses", losses, bound, single.model.precision);
  write_reference(parts, "gradients", gradients, bound, single.model.precision);
  collectives.write();
}

History run_lockstep(const CaseParts& parts, const std::vector<StepInput>& inputs,
                     const History& eager_a, KeptArms& kept) {
  kept.push_back(std::make_unique<Arm>(parts, "lockstep_eager", "none", Watch::full));
  Arm& eager = *kept.back();
  kept.push_back(std::make_unique<Arm>(parts, "lockstep_graph", parts.config.engine.impl,
                                       Watch::full, eager.outputs()));
  Arm& graph = *kept.back();
  History history;
  std::optional<workloads::Checkpoint> checkpoint;
  parts.scope.boundary(Phase::capture);  // the next vote of all ranks, also after a failure
  CountedCollectives collectives(parts, "lockstep");
  for (std::int64_t step = 0; step <= parts.config.steps; ++step) {
    const StepInput& input = inputs[static_cast<std::size_t>(step)];
    if (step == parts.config.steps)
      parts.scope.write(record::ScribbledLine{
          .arm = graph.name(), .step = step, .bytes = parts.device.overwrite_free_memory()});
    const Snapshot left = eager.run(step, input);
    Snapshot right = graph.run(step, input);
    parts.scope.enter(Phase::compare, graph.name(), step);
    write_comparison(parts, eager.name(), graph.name(),
                     step < parts.config.steps ? "lockstep" : "capture_inputs_last", step,
                     input.word, left, right);
    if (step < parts.config.steps) history.add(std::move(right));
    if (const Snapshot* first = step < parts.config.steps ? eager_a.at(step) : nullptr)
      write_comparison(parts, "eager_a", eager.name(), "eager_again", step, input.word, *first,
                       left);
    if (parts.config.schedule == Schedule::resume && step + 1 == parts.config.resume_step())
      checkpoint.emplace(graph.checkpoint());
    if (parts.config.schedule == Schedule::train_eval_train &&
        step + 1 == parts.config.evaluation_step())
      run_evaluation(parts, eager, graph);
    if (parts.config.schedule == Schedule::train_eval_train && step + 1 == parts.config.steps)
      run_later_evaluation(parts, eager, graph);
    if (parts.config.rolls_out_after(step))
      run_rollout(
          parts, eager, graph,
          {.round = step - parts.config.first_replay(), .last = step == parts.config.steps});
  }
  graph.vote_if_not_captured();
  collectives.write();
  if (checkpoint) run_resumed(parts, inputs, history.steps(), *checkpoint);
  return history;
}

void keep_last(const CaseParts& parts, KeptArms& kept) {
  if (kept.empty()) return;
  const auto last = std::prev(kept.end());
  for (auto arm = kept.begin(); arm != last; ++arm) (*arm)->drop_graphs();
  kept.erase(kept.begin(), last);
  parts.device.synchronize();
}

void run_free(const CaseParts& parts, const std::vector<StepInput>& inputs, const Snapshot& eager_a,
              KeptArms& kept) {
  CountedCollectives collectives(parts, "free_run");
  kept.push_back(std::make_unique<Arm>(parts, "free_graph", parts.config.engine.impl, Watch::free,
                                       kept.front()->outputs()));
  Arm& graph = *kept.back();
  parts.scope.boundary(Phase::capture);
  const DelayedBranches delayed_branches(parts.device);
  DelayedSteps delayed(parts, kReplayDelayMs);
  for (std::int64_t step = 0; step < parts.config.steps; ++step) {
    // A capture waits for the device, so in the step of the capture a delay has the least effect.
    if (const std::int64_t replay = step - parts.config.first_replay(); replay >= 0)
      delayed.delay_work(step, replay % 2 == 0 ? capture::DelayedStreams::current
                                               : capture::DelayedStreams::others);
    graph.run(step, inputs[static_cast<std::size_t>(step)]);
  }
  graph.finish(parts.config.steps - 1);
  delayed.write(graph.name(), graph.delayed_branches());
  const c10::StreamGuard guard(parts.stream);
  const Snapshot right = fixtures::on_host(graph.outputs());
  graph.vote_if_not_captured();
  parts.scope.enter(Phase::compare, graph.name(), parts.config.steps - 1);
  write_comparison(parts, "eager_a", graph.name(), "free_run", parts.config.steps - 1, "fresh",
                   eager_a, right);
  collectives.write();
}

}  // namespace graphproof::suites
