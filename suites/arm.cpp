#include "suites/arm.h"

#include <algorithm>
#include <cmath>

#include "fixtures/nvtx.h"
#include "fixtures/resident.h"
#include "fixtures/rng_tracker.h"
#include "fixtures/torch.h"
#include "suites/learning_rate.h"

namespace graphproof::suites {
namespace {

using fixtures::NamedTensor;

engines::EngineConfig engine_config(const StepConfig& config, std::string impl, std::vector<NamedTensor> stale) {
  engines::EngineConfig engine = config.engine;
  engine.impl = std::move(impl);
  engine.stale_outputs = std::move(stale);
  return engine;
}

bool is_parameter(const NamedTensor& tensor) { return tensor.name.starts_with("param:"); }

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

/// sqrt of the sum of squares in fp64, in tensor order: the same number whenever the bytes are the same.
double norm(const std::vector<NamedTensor>& tensors) {
  double sum = 0;
  for (const NamedTensor& tensor : tensors) sum += tensor.tensor.to(at::kDouble).square().sum().item<double>();
  return std::sqrt(sum);
}

/// The parameter whose movement is watched: the largest, because its many elements narrow the estimate most.
std::size_t watched_parameter(workloads::TrainStep& step) {
  const auto parameters = step.parameters();
  const auto largest = std::max_element(parameters.begin(), parameters.end(), [](const auto& a, const auto& b) {
    return a.tensor.numel() < b.tensor.numel();
  });
  return static_cast<std::size_t>(largest - parameters.begin());
}

}  // namespace

struct Arm::Before {
  std::map<std::string, std::string> generators;
  at::Tensor parameter;  // a copy of the watched one
  std::vector<std::int64_t> counter;
  std::int64_t replays = 0;
};

Arm::Arm(const CaseParts& parts, std::string name, std::string impl, Watch watch, std::vector<NamedTensor> stale)
    : parts_(parts), name_(std::move(name)), watch_(watch), graphs_(impl != "none"), device_(parts.device) {
  parts_.scope.enter(Phase::build, name_, 0);
  const c10::StreamGuard guard(parts_.stream);
  const StepConfig& config = parts_.config;
  step_ = std::make_unique<workloads::TrainStep>(config.model, config.layout, device_, config.seed, config.engine.fault,
                                                 config.rng_backend);
  if (graphs_ && watch_ == Watch::free) {
    observer_ = std::make_unique<CaptureObserver>(parts_.scope, *step_, name_);
  } else if (graphs_) {
    auto observer = std::make_unique<ReplayObserver>(parts_.scope, device_, *step_, name_);
    replays_ = observer.get();
    observer_ = std::move(observer);
  }
  engine_ = engines::make_engine(engine_config(config, std::move(impl), std::move(stale)), device_, parts_.stream, *step_,
                                 observer_.get());
}

Arm::~Arm() = default;

std::vector<NamedTensor> Arm::outputs() {
  std::vector<NamedTensor> tensors = engine_->outputs();
  const auto masks = step_->masks();
  tensors.insert(tensors.end(), masks.begin(), masks.end());
  return tensors;
}

Snapshot Arm::run(std::int64_t index, const StepInput& input) {
  const fixtures::NvtxRange range(name_, index);
  const c10::StreamGuard guard(parts_.stream);
  const double learning_rate = scheduled_learning_rate(index);
  const bool warming_up = graphs_ && index < parts_.config.capture_step();
  parts_.scope.enter(!graphs_ ? Phase::eager : warming_up ? Phase::warmup : Phase::replay, name_, index);
  if (observer_) observer_->at_step(index);
  if (watch_ == Watch::free) {
    engine_->step(input.batch, learning_rate);
    return {};
  }
  const Before before = look_before(index);
  const auto begin = std::chrono::steady_clock::now();
  engine_->step(input.batch, learning_rate);
  parts_.device.synchronize(parts_.stream);
  const double ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
  const Snapshot left = fixtures::on_host(outputs());
  write_step(index, input, learning_rate, ms, left);
  if (graphs_ && !warming_up) {
    const auto replay = replays_->take();
    if (device_.counts().replays == before.replays) ++fallbacks_;
    write_replay(index, replay ? replay->counter_before : before.counter, fallbacks_);
    if (replay) write_poison(index, *replay);
  }
  if (watch_ == Watch::full) {
    write_rng(index, before);
    write_learning_rate(index, learning_rate, before);
    write_memory(index);
  }
  return left;
}

Snapshot Arm::finish(std::int64_t last) {
  const c10::StreamGuard guard(parts_.stream);
  parts_.device.synchronize(parts_.stream);
  if (graphs_) {
    // One count for the whole run: a look after each step would have waited for it.
    const std::int64_t wanted = std::max<std::int64_t>(0, last + 1 - parts_.config.capture_step());
    write_replay(last, std::vector<std::int64_t>(static_cast<std::size_t>(parts_.config.model.layers), 0),
                 std::max<std::int64_t>(0, wanted - device_.counts().replays));
  }
  return fixtures::on_host(outputs());
}

Arm::Before Arm::look_before(std::int64_t) {
  Before before;
  before.replays = device_.counts().replays;
  if (graphs_) before.counter = layer_counts(device_, *step_);
  if (watch_ == Watch::full) {
    if (parts_.config.model.dropout > 0) before.generators = step_->rng().states();
    before.parameter = step_->parameters()[watched_parameter(*step_)].tensor.detach().clone();
  }
  return before;
}

void Arm::write_step(std::int64_t index, const StepInput& input, double learning_rate, double ms, const Snapshot& left) {
  const auto losses = named(left, "losses");
  const auto gradients = named(left, "grad:");
  auto loss = record::Json::array();
  for (const NamedTensor& tensor : losses)
    for (const double value : values(tensor.tensor)) loss.push_back(record::number(value));
  const std::string loss_digest = fixtures::digest(losses);
  record::Json digest = {{"grads", fixtures::digest(gradients)}, {"params", fixtures::digest(named(left, "param:"))}, {"losses", loss_digest}};
  parts_.scope.write("step", {{"arm", name_},
                              {"step", index},
                              {"input", input.word},
                              {"loss", std::move(loss)},
                              {"loss_bits", loss_digest},
                              {"grad_norm", record::number(norm(gradients))},
                              {"digest", std::move(digest)},
                              {"learning_rate", learning_rate},
                              {"ms", ms}});
}

void Arm::write_rng(std::int64_t index, const Before& before) {
  if (parts_.config.model.dropout == 0) return;
  const std::string mask = fixtures::digest(step_->masks());
  for (const auto& [region, after] : step_->rng().states())
    parts_.scope.write("rng", {{"arm", name_}, {"step", index}, {"generator", region}, {"before", before.generators.at(region)}, {"after", after}, {"mask", mask}});
}

void Arm::write_learning_rate(std::int64_t index, double learning_rate, const Before& before) {
  // The step's own gradients, not what the engine hands out: the question is what the optimizer used.
  const std::size_t watched = watched_parameter(*step_);
  const FeltRate felt = felt_learning_rate(before.parameter, step_->parameters()[watched].tensor,
                                           step_->gradients()[watched].tensor, learning_rate);
  parts_.scope.write("knob", {{"arm", name_},
                              {"step", index},
                              {"knob", "learning_rate"},
                              {"host", learning_rate},
                              {"effective", record::number(felt.rate)},
                              {"bound", record::number(felt.bound)}});
}

void Arm::write_replay(std::int64_t index, const std::vector<std::int64_t>& counter_before, std::int64_t fallbacks) {
  const GraphCounts counts = device_.counts();
  parts_.scope.write("replay", {{"arm", name_},
                                {"graph", parts_.config.engine.impl},
                                {"step", index},
                                {"replays", counts.replays},
                                {"fallbacks", fallbacks},
                                {"recaptures", std::max<std::int64_t>(0, counts.captures_begun - 1)},
                                {"counter_before", counter_before},
                                {"counter_after", layer_counts(device_, *step_)},
                                {"counter_per_replay", std::vector<std::int64_t>(static_cast<std::size_t>(parts_.config.model.layers),
                                                                                 parts_.config.model.microbatches)}});
}

void Arm::write_poison(std::int64_t index, const ReplayObserver::Replay& replay) {
  // What is compared must be among what was poisoned, except parameters, which a step changes instead of writing.
  std::vector<NamedTensor> compared = outputs();
  std::erase_if(compared, is_parameter);
  const auto poisoned = std::count_if(compared.begin(), compared.end(), [&](const NamedTensor& tensor) {
    return replay.poisoned.contains(device_.address(tensor.tensor));
  });
  parts_.scope.write("poison", {{"arm", name_},
                                {"step", index},
                                {"outputs", poisoned},
                                {"compared", compared.size()},
                                {"bytes", replay.poisoned_bytes},
                                {"canary_words", replay.canary_words + fixtures::canary_words(compared)}});
}

void Arm::write_memory(std::int64_t index) {
  const capture::MemoryUse use = device_.memory();
  parts_.scope.write("memory", {{"arm", name_},
                                {"step", index},
                                {"allocated", use.allocated},
                                {"reserved", use.reserved},
                                {"pool", use.pool},
                                {"resident", fixtures::resident_bytes()}});
}

void Arm::settle_capture() {
  if (!graphs_ || observer_->captured()) return;
  parts_.scope.boundary(Phase::capture);
  parts_.scope.vote(0);
  parts_.scope.boundary(Phase::replay);
}

void Arm::drop_graphs() {
  if (engine_) engine_->drop_graphs();
}

}  // namespace graphproof::suites
