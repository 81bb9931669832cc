#include "suites/arms/arm.h"

#include <algorithm>
#include <cmath>

#include "fixtures/device/nvtx.h"
#include "fixtures/device/rng_tracker.h"
#include "fixtures/inspect/host_copies.h"
#include "fixtures/inspect/poison.h"
#include "fixtures/inspect/tensor_digest.h"
#include "fixtures/tensors/torch.h"
#include "suites/arms/second_capture.h"
#include "suites/case/learning_rate.h"
#include "suites/case/rank_lines.h"
#include "suites/case/step_lines.h"
#include "suites/case/update_lines.h"
#include "suites/inference/inference_job.h"
#include "workloads/faults/plant.h"

namespace graphproof::suites {
namespace {

using fixtures::NamedTensor;

engines::EngineConfig engine_config(const StepConfig& config, std::string impl) {
  engines::EngineConfig engine = config.engine;
  engine.impl = std::move(impl);
  return engine;
}

/// Parameters and optimizer state. They are not poisoned, because a step starts from their old
/// values.
bool is_carried_over(const NamedTensor& tensor) {
  return tensor.name.starts_with("param:") || tensor.name.starts_with("state:");
}

std::vector<NamedTensor> named(const Snapshot& left, std::string_view prefix) {
  std::vector<NamedTensor> chosen;
  for (const NamedTensor& tensor : left)
    if (std::string_view(tensor.name).starts_with(prefix)) chosen.push_back(tensor);
  return chosen;
}

std::vector<double> values(const at::Tensor& tensor) {
  const at::Tensor flat = tensor.to(at::kDouble).contiguous().view({-1});
  return {flat.const_data_ptr<double>(), flat.const_data_ptr<double>() + flat.numel()};
}

double learning_rate_at(const StepConfig& config, std::int64_t step) {
  return learning_rate_schedule(config.model.optimizer).at(step);
}

/// The square root of the sum of squares, in fp64 and in the order of the tensors, so that equal
/// bytes have equal norms.
double norm(const std::vector<NamedTensor>& tensors) {
  double sum = 0;
  for (const NamedTensor& tensor : tensors)
    sum += tensor.tensor.to(at::kDouble).square().sum().item<double>();
  return std::sqrt(sum);
}

}  // namespace

struct Arm::Before {
  std::map<std::string, std::string> generators;
  StepBefore step;
  UpdatesBefore updates;  // only with Watch::ranks
  std::vector<std::int64_t> counter;
  std::int64_t replays = 0;
};

Arm::Arm(const CaseParts& parts, std::string name, std::string impl, Watch watch,
         const std::vector<NamedTensor>& eager)
    : parts_(parts),
      name_(std::move(name)),
      impl_(std::move(impl)),
      watch_(watch),
      graphs_(engines::traits_of(impl_).captures()),
      device_(parts.device) {
  parts_.scope.enter(Phase::build, name_, 0);
  const c10::StreamGuard guard(parts_.stream);
  const StepConfig& config = parts_.config;
  step_ = std::make_unique<workloads::TrainStep>(config.model, config.layout, device_, config.seed,
                                                 faults::plant(config.fault), config.rng_backend);
  step_->faults().compared_with(eager);
  for (const workloads::BufferArena::Placed& buffer : step_->placed_buffers())
    parts_.scope.write(record::PlacementLine{.arm = name_,
                                             .buffer = buffer.place.buffer,
                                             .bytes = buffer.place.bytes,
                                             .offset = buffer.place.offset,
                                             .span_bytes = buffer.place.span_bytes,
                                             .straddles = buffer.place.straddles});
  if (graphs_ && watch_ == Watch::free) {
    observer_ = std::make_unique<CaptureObserver>(parts_.scope, device_, *step_, name_);
  } else if (graphs_) {
    auto observer = std::make_unique<ReplayObserver>(parts_.scope, device_, *step_, name_);
    replays_ = observer.get();
    device_.watch_operands();
    observer_ = std::move(observer);
  }
  engine_ = engines::make_engine(engine_config(config, impl_), device_, parts_.stream, *step_,
                                 observer_.get());
}

Arm::~Arm() = default;

void Arm::capture_again(std::int64_t index, const StepInput& input) {
  run_second_capture(parts_,
                     {.arm = name_,
                      .engine = engine_config(parts_.config, impl_),
                      .step = *step_,
                      .graphs = observer_->nodes()},
                     index, input);
}

workloads::Checkpoint Arm::checkpoint() {
  const c10::StreamGuard guard(parts_.stream);
  return workloads::Checkpoint(*step_);
}

std::vector<NamedTensor> Arm::outputs() {
  std::vector<NamedTensor> tensors = engine_->outputs();
  const auto masks = step_->masks();
  tensors.insert(tensors.end(), masks.begin(), masks.end());
  return tensors;
}

Snapshot Arm::run(std::int64_t index, const StepInput& input) {
  const fixtures::NvtxRange range(name_, index);
  const c10::StreamGuard guard(parts_.stream);
  const double learning_rate = learning_rate_at(parts_.config, index);
  const bool warming_up = graphs_ && index < parts_.config.first_replay();
  parts_.scope.enter(!graphs_     ? Phase::eager
                     : warming_up ? Phase::warmup
                                  : Phase::replay,
                     name_, index);
  if (observer_) observer_->at_step(index);
  const bool padded_otherwise = graphs_ && !input.padded_otherwise.tokens.empty();
  const workloads::Batch& batch = padded_otherwise ? input.padded_otherwise : input.batch;
  if (watch_ == Watch::free) {
    engine_->step(batch, learning_rate);
    note_captures();
    return {};
  }
  const Before before = before_step();
  const auto begin = std::chrono::steady_clock::now();
  std::optional<capture::ProductLog> products;
  if (parts_.config.model.autocast) products.emplace(parts_.device.torch_device().type());
  engine_->step(batch, learning_rate);
  parts_.device.synchronize(parts_.stream);
  const double ms =
      std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
  if (products) write_products(parts_.scope, name_, index, *products);
  products.reset();
  if (parts_.config.model.cpu_offload) write_offload(parts_.scope, name_, index, *step_);
  note_captures();
  Snapshot left = results(index, input, ms);
  if (graphs_ && !warming_up) {
    const auto replay = replays_->take();
    if (device_.counts().replays == before.replays) ++fallbacks_;
    write_replay(index, replay ? replay->counter_before : before.counter, fallbacks_);
    if (replay) {
      write_poison(index, outputs(), *replay, device_.counts().replays - before.replays);
    }
    const auto operands = device_.take_operands();
    if (operands && !operands->freed.empty())
      parts_.scope.doubt("arm " + name_ + " replayed on memory that was freed");
    if (operands)
      parts_.scope.write(record::OperandsLine{
          .arm = name_, .step = index, .blocks = operands->blocks, .freed = operands->freed});
  }
  if (graphs_) write_handed_out(index);
  write_rng(index, before);
  write_step_lines(parts_.scope, name_, index, learning_rate, *step_, before.step);
  if (watch_ == Watch::ranks) {
    write_rank_lines(parts_.scope, name_, index, *step_);
    write_updates(parts_.scope, name_, index, learning_rate, *step_, before.updates);
  }
  return left;
}

Snapshot Arm::evaluate(std::int64_t index, const workloads::Batch& batch) {
  const c10::StreamGuard guard(parts_.stream);
  parts_.scope.enter(graphs_ ? Phase::replay : Phase::eager, name_, index);
  const std::int64_t captures = device_.counts().captures_begun, replays = device_.counts().replays;
  engine_->evaluate(batch);
  parts_.device.synchronize(parts_.stream);
  if (const auto replay = replays_ ? replays_->take() : std::nullopt) {
    ++evaluated_.announced;
    write_poison(replays_->step(), {{"evaluation_losses", step_->evaluation_losses()}}, *replay,
                 device_.counts().replays - replays);
  }
  ++evaluated_.evaluations;
  evaluated_.captures += device_.counts().captures_begun - captures;
  evaluated_.replays += device_.counts().replays - replays;
  return fixtures::on_host({{"evaluation_losses", step_->evaluation_losses()}});
}

void Arm::write_evaluated(std::int64_t step) {
  parts_.scope.write(record::EvaluatedLine{.arm = name_,
                                           .step = step,
                                           .evaluations = evaluated_.evaluations,
                                           .captures = evaluated_.captures,
                                           .replays = evaluated_.replays,
                                           .announced = evaluated_.announced});
}

std::vector<Snapshot> Arm::roll_out() {
  const c10::StreamGuard guard(parts_.stream);
  const std::vector<std::int64_t> before = layer_counts(device_, *step_);
  if (!rollouts_) {
    rollouts_ = std::make_unique<InferenceJob>(
        parts_, *step_,
        InferenceArm{.name = name_ + "_rollout",
                     .graph = graphs_,
                     .padding = graphs_ ? Padding::others : Padding::zeros,
                     .watch = watch_});
    if (graphs_) parts_.scope.boundary(Phase::capture);
    rollouts_->capture();
    if (graphs_) parts_.scope.boundary(Phase::replay);
  }
  step_->gather_parameters();
  const std::int64_t steps = parts_.config.decoding->requests.steps;
  std::vector<Snapshot> results;
  for (std::int64_t index = 0; index < steps; ++index)
    results.push_back(rollouts_->run(index, rolled_out_ * steps));
  ++rolled_out_;
  const std::vector<std::int64_t> after = layer_counts(device_, *step_);
  inferred_.resize(after.size(), 0);
  for (std::size_t layer = 0; layer < after.size(); ++layer)
    inferred_[layer] += after[layer] - before[layer];
  return results;
}

Snapshot Arm::results(std::int64_t index, const StepInput& input, double ms) {
  const c10::StreamGuard guard(parts_.stream);
  Snapshot left = fixtures::on_host(outputs());
  write_step(index, input, ms, left);
  return left;
}

void Arm::finish(std::int64_t last) {
  const c10::StreamGuard guard(parts_.stream);
  parts_.device.synchronize(parts_.stream);
  if (!graphs_) return;
  // Counted once for the whole run, because reading the counter after each step would wait for it.
  const std::int64_t wanted = std::max<std::int64_t>(0, last + 1 - parts_.config.first_replay()) *
                              std::max<std::int64_t>(1, engine_->counters().launches_per_step);
  std::vector<std::int64_t> not_of_training = inferred_;
  not_of_training.resize(static_cast<std::size_t>(step_->layer_counter().size(0)), 0);
  write_replay(last, not_of_training, std::max<std::int64_t>(0, wanted - device_.counts().replays));
}

Arm::Before Arm::before_step() {
  Before before;
  before.replays = device_.counts().replays;
  if (graphs_) before.counter = layer_counts(device_, *step_);
  if (parts_.config.model.dropout > 0) before.generators = step_->rng().states();
  before.step = look_before_step(*step_);
  if (parts_.config.model.cpu_offload) mark_offload(*step_);
  if (watch_ == Watch::ranks) before.updates = look_before_updates(*step_);
  return before;
}

void Arm::write_step(std::int64_t index, const StepInput& input, double ms, const Snapshot& left) {
  const auto losses = named(left, "losses");
  const auto gradients = named(left, "grad:");
  std::vector<double> loss;
  for (const NamedTensor& tensor : losses)
    for (const double value : values(tensor.tensor)) loss.push_back(value);
  const std::string loss_digest = fixtures::digest(losses);
  parts_.scope.write(record::StepLine{.arm = name_,
                                      .step = index,
                                      .input = input.word,
                                      .loss = std::move(loss),
                                      .loss_bits = loss_digest,
                                      .grad_norm = norm(gradients),
                                      .digest = {.grads = fixtures::digest(gradients),
                                                 .params = fixtures::digest(named(left, "param:")),
                                                 .losses = loss_digest},
                                      .learning_rate = learning_rate_at(parts_.config, index),
                                      .ms = ms});
}

void Arm::write_rng(std::int64_t index, const Before& before) {
  if (parts_.config.model.dropout == 0) return;
  const std::string mask = fixtures::digest(step_->masks());
  for (const auto& [region, after] : step_->rng().states())
    parts_.scope.write(record::RngLine{.arm = name_,
                                       .step = index,
                                       .generator = region,
                                       .before = before.generators.at(region),
                                       .after = after,
                                       .mask = mask});
}

void Arm::write_replay(std::int64_t index, const std::vector<std::int64_t>& counter_before,
                       std::int64_t fallbacks) {
  const GraphCounts& counts = device_.counts();
  if (fallbacks > 0) parts_.scope.doubt("arm " + name_ + " did not replay a step");
  parts_.scope.write(record::ReplayLine{
      .arm = name_,
      .graph = parts_.config.engine.impl,
      .step = index,
      .replays = counts.replays - evaluated_.replays,
      .fallbacks = fallbacks,
      .recaptures = counts.captures_begun - evaluated_.captures - first_captures_,
      .out_of_order = engine_->counters().out_of_order,
      .counter_before = counter_before,
      .counter_after = layer_counts(device_, *step_),
      .counter_per_replay =
          std::vector<std::int64_t>(static_cast<std::size_t>(step_->layer_counter().size(0)),
                                    parts_.config.model.microbatches)});
}

void Arm::note_captures() {
  // All graphs are captured in the first step that captures any. Later captures are recaptures.
  if (first_captures_ == 0) first_captures_ = device_.counts().captures_begun;
}

void Arm::write_handed_out(std::int64_t index) {
  if (handed_out_losses_.defined())
    parts_.scope.write(record::HandedOutLine{.arm = name_,
                                             .step = index - 1,
                                             .what = "losses",
                                             .digest = handed_out_digest_,
                                             .later_digest = fixtures::digest(handed_out_losses_)});
  handed_out_losses_ = engine_->losses();
  handed_out_digest_ = fixtures::digest(handed_out_losses_);
}

void Arm::write_poison(std::int64_t index, const std::vector<NamedTensor>& left,
                       const ReplayObserver::Replay& replay, std::int64_t launches) {
  std::vector<std::string> unregistered;
  for (const NamedTensor& tensor : left)
    if (!replay.registered.contains(device_.address(tensor.tensor)))
      unregistered.push_back(tensor.name);
  // What is compared must be among what was poisoned, except what a step changes instead of
  // writing.
  std::vector<NamedTensor> compared = left;
  std::erase_if(compared, is_carried_over);
  const auto poisoned =
      std::count_if(compared.begin(), compared.end(), [&](const NamedTensor& tensor) {
        return replay.poisoned.contains(device_.address(tensor.tensor));
      });
  const std::int64_t canary_words = replay.canary_words + fixtures::canary_words(compared);
  if (canary_words > 0) parts_.scope.doubt("a replay of arm " + name_ + " left outputs unwritten");
  parts_.scope.write(record::PoisonLine{.arm = name_,
                                        .step = index,
                                        .outputs = poisoned,
                                        .compared = std::ssize(compared),
                                        .bytes = replay.poisoned_bytes,
                                        .canary_words = canary_words,
                                        .launches = launches,
                                        .announced = replay.announced,
                                        .inspected = replay.inspected,
                                        .unregistered = std::move(unregistered)});
}

void Arm::vote_if_not_captured() {
  if (!graphs_ || observer_->captured()) return;
  parts_.scope.boundary(Phase::capture);
  parts_.scope.vote(0);
  parts_.scope.boundary(Phase::replay);
}

std::int64_t Arm::drop_graphs() {
  if (!engine_) return 0;
  if (rollouts_) rollouts_->drop_graphs();
  engine_->drop_graphs();
  return engine_->counters().drops_in_flight;
}

}  // namespace graphproof::suites
