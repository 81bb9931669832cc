#include "workloads/engines/shape_buckets.h"

#include <algorithm>
#include <functional>
#include <stdexcept>
#include <string>
#include <utility>

#include "fixtures/tensors/torch.h"
#include "workloads/engine_traits/engine_traits.h"
#include "workloads/engines/capture/step_tensors.h"
#include "workloads/training/lengths.h"

namespace graphproof::engines {
namespace {

void add_counts(Counters& to, const Counters& counted) {
  to.replays += counted.replays;
  to.captures += counted.captures;
  to.out_of_order += counted.out_of_order;
  to.drops_in_flight += counted.drops_in_flight;
}

[[noreturn]] void refuse_buckets(const std::string& got, const std::string& want,
                                 const std::string& why) {
  throw std::invalid_argument("shape buckets: got " + got + "; want " + want + "; why: " + why +
                              "; next: change the case");
}

}  // namespace

ShapeBuckets::ShapeBuckets(const EngineConfig& config, capture::Device& device, c10::Stream stream,
                           workloads::TrainStep& step, Observer* observer, Buckets buckets)
    : config_(config),
      device_(device),
      stream_(stream),
      step_(step),
      observer_(observer),
      buckets_(std::move(buckets)) {
  if (!traits_of(config_.impl).serves_shape_buckets)
    refuse_buckets("impl " + config_.impl,
                   engine_names([](const EngineTraits& one) { return one.serves_shape_buckets; }),
                   "the others hold a schedule of fixed shapes");
  if (config_.optimizer_graph)
    refuse_buckets("an optimizer graph", "none",
                   "it is the same for all lengths, and would be captured with each of them");
  if (buckets_.bound < 1)
    refuse_buckets("a cache of " + std::to_string(buckets_.bound) + " buckets", "at least one",
                   "nothing would ever replay");
  if (buckets_.lengths.empty() ||
      std::adjacent_find(buckets_.lengths.begin(), buckets_.lengths.end(),
                         std::greater_equal<>()) != buckets_.lengths.end())
    refuse_buckets("buckets that are not ascending", "lengths in ascending order",
                   "the next bucket of a length is looked for from the smallest on");
  // What an engine needs of a step is refused here, not at the first capture.
  if (step.rng().backend() == fixtures::RngBackend::plain)
    refuse_buckets("rng_tracker plain", "graph_safe",
                   "rule B08, a capture can neither read nor set a generator's state");
}

ShapeBuckets::~ShapeBuckets() { step_.module_runner(nullptr); }

std::int64_t ShapeBuckets::longest(const workloads::Batch& batch) {
  std::int64_t longest = 0;
  for (const at::Tensor& tokens : batch.tokens) longest = std::max(longest, tokens.size(1));
  return longest;
}

void ShapeBuckets::step(const workloads::Batch& batch, double learning_rate, std::int64_t longest) {
  refuse_after_drop(dropped_);
  const c10::StreamGuard guard(stream_);
  ++earlier_.steps;
  const auto bucket = std::find_if(buckets_.lengths.begin(), buckets_.lengths.end(),
                                   [&](std::int64_t length) { return length >= longest; });
  latest_ = {.length = bucket == buckets_.lengths.end() ? longest : *bucket,
             .replayed = false,
             .captured = false,
             .evicted = {}};
  // M143 stands for a lookup whose key holds everything but the length: it finds whatever was used
  // last.
  if (config_.fault.is("M143") && !residents_.empty()) latest_.length = residents_.front().length;
  const workloads::Batch ready =
      workloads::padded(batch, latest_.length, /*filler=*/0, config_.fault.is("M144"));
  if (bucket == buckets_.lengths.end() && !config_.fault.is("M143"))
    return step_eagerly(ready, learning_rate);
  Resident* resident = find(latest_.length);
  if (!resident && uses_[latest_.length] < config_.warmup_steps) {
    ++uses_[latest_.length];
    return step_eagerly(ready, learning_rate);
  }
  if (!resident) {
    // M66 stands for a cache that knows no bound.
    while (static_cast<std::int64_t>(residents_.size()) >= buckets_.bound &&
           !config_.fault.is("M66"))
      evict();
    EngineConfig at_once = config_;
    at_once.warmup_steps = 0;
    residents_.push_front({latest_.length, make_engine(at_once, device_, stream_, step_, observer_),
                           std::make_unique<c10::Event>(stream_.device_type())});
    resident = &residents_.front();
    latest_.captured = true;
  }
  latest_.replayed = true;
  // Eager steps and other buckets' engines have had the parts since; an engine takes them when it
  // is made alone.
  step_.module_runner(dynamic_cast<workloads::ModuleRunner*>(resident->engine.get()));
  resident->engine->step(ready, learning_rate);
  resident->replayed->record(stream_);
}

void ShapeBuckets::step_eagerly(const workloads::Batch& batch, double learning_rate) {
  ++earlier_.eager;
  step_.module_runner(nullptr);
  step_.learning_rate(learning_rate);
  step_.forward_backward(batch);
  step_.optimizer_step();
}

/// Null for a length without graphs. What is found is the latest used from now on.
ShapeBuckets::Resident* ShapeBuckets::find(std::int64_t length) {
  const auto found = std::find_if(residents_.begin(), residents_.end(),
                                  [&](const Resident& one) { return one.length == length; });
  if (found == residents_.end()) return nullptr;
  residents_.splice(residents_.begin(), residents_, found);
  return &residents_.front();
}

void ShapeBuckets::evict() {
  latest_.evicted.push_back(residents_.back().length);
  // M142 stands for a cache that forgets its entry and not what it holds.
  if (config_.fault.is("M142"))
    forgotten_.push_back(std::move(residents_.back()));
  else
    drop(residents_.back());
  residents_.pop_back();
  device_.empty_cache();
}

void ShapeBuckets::drop(Resident& resident) {
  // M145 stands for an eviction that doesn't wait for a replay that takes long; StepGraph::drop()
  // doesn't either then.
  if (config_.fault.is("M145")) {
    delay();
    resident.replayed->record(stream_);
  } else {
    device_.synchronize();
  }
  if (!resident.replayed->query()) ++earlier_.drops_in_flight;
  resident.engine->drop_graphs();
  add_counts(earlier_, resident.engine->counters());
  resident.engine.reset();
}

/// Tens of milliseconds of the device, longer than a host needs for the next steps.
void ShapeBuckets::delay() const {
  constexpr std::int64_t kSize = 2048, kProducts = 128;
  const at::Tensor square =
      at::zeros({kSize, kSize}, at::TensorOptions().device(device_.torch_device()));
  for (std::int64_t i = 0; i < kProducts; ++i) at::mm(square, square);
}

void ShapeBuckets::evaluate(const workloads::Batch& batch) {
  refuse_after_drop(dropped_);
  const c10::StreamGuard guard(stream_);
  step_.module_runner(nullptr);
  step_.evaluate(batch);
}

std::vector<NamedTensor> ShapeBuckets::outputs() { return step_outputs(step_); }

at::Tensor ShapeBuckets::losses() { return kept_losses(step_, config_.fault); }

std::vector<std::int64_t> ShapeBuckets::resident() const {
  std::vector<std::int64_t> lengths;
  for (const Resident& resident : residents_) lengths.push_back(resident.length);
  return lengths;
}

Counters ShapeBuckets::counters() const {
  Counters counters = earlier_;
  for (const Resident& resident : residents_) {
    const Counters own = resident.engine->counters();
    add_counts(counters, own);
    counters.graphs += own.graphs;
    counters.launches_per_step = own.launches_per_step;
  }
  for (const Resident& resident : forgotten_) add_counts(counters, resident.engine->counters());
  return counters;
}

void ShapeBuckets::drop_graphs() {
  dropped_ = true;
  for (Resident& resident : residents_) drop(resident);
  for (Resident& resident : forgotten_) drop(resident);
  residents_.clear();
  forgotten_.clear();
  device_.empty_cache();
}

}  // namespace graphproof::engines
