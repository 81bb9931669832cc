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
                   "the other engines hold a schedule of fixed shapes");
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
  // A step that the engines would refuse is refused here and not only at the first capture.
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
  const std::optional<std::int64_t> bucket = bucket_of(longest);
  latest_ = {
      .length = bucket.value_or(longest), .replayed = false, .captured = false, .evicted = {}};
  const workloads::Batch ready = workloads::own_part(
      workloads::padded(batch, latest_.length, /*filler=*/0, step_.faults()), step_.layout());
  if (!bucket) return step_eagerly(ready, learning_rate);
  Resident* resident = find(latest_.length);
  if (!resident && uses_[latest_.length] < config_.warmup_steps) {
    ++uses_[latest_.length];
    return step_eagerly(ready, learning_rate);
  }
  if (!resident) {
    while (static_cast<std::int64_t>(residents_.size()) >= buckets_.bound &&
           step_.faults().evicts(residents_.back().engine))
      evict();
    EngineConfig at_once = config_;
    at_once.warmup_steps = 0;
    residents_.push_front({latest_.length, make_engine(at_once, device_, stream_, step_, observer_),
                           std::make_unique<c10::Event>(stream_.device_type())});
    resident = &residents_.front();
    latest_.captured = true;
  }
  latest_.replayed = true;
  // An engine becomes the runner of the parts only when it is made. Since then, eager steps and the
  // engines of other buckets may have replaced it.
  step_.module_runner(resident->engine->module_runner());
  resident->engine->step(ready, learning_rate);
  resident->replayed->record(stream_);
}

/// The smallest bucket that holds a microbatch of this length; none if it exceeds the largest
/// bucket.
std::optional<std::int64_t> ShapeBuckets::bucket_of(std::int64_t longest) {
  const auto found = std::ranges::lower_bound(buckets_.lengths, longest);
  return step_.faults().bucket(
      found == buckets_.lengths.end() ? std::nullopt : std::optional(*found),
      residents_.empty() ? std::nullopt : std::optional(residents_.front().length));
}

void ShapeBuckets::step_eagerly(const workloads::Batch& batch, double learning_rate) {
  ++earlier_.eager;
  step_.module_runner(nullptr);
  step_.learning_rate(learning_rate);
  step_.forward_backward(batch);
  step_.optimizer_step();
}

/// Returns null for a length without graphs. Otherwise the result becomes the most recently used.
ShapeBuckets::Resident* ShapeBuckets::find(std::int64_t length) {
  const auto found = std::find_if(residents_.begin(), residents_.end(),
                                  [&](const Resident& one) { return one.length == length; });
  if (found == residents_.end()) return nullptr;
  residents_.splice(residents_.begin(), residents_, found);
  return &residents_.front();
}

void ShapeBuckets::evict() {
  latest_.evicted.push_back(residents_.back().length);
  drop(residents_.back());
  residents_.pop_back();
  device_.empty_cache();
}

void ShapeBuckets::drop(Resident& resident) {
  const bool waits = step_.faults().waits_before_drop(stream_);
  resident.replayed->record(stream_);
  if (waits) device_.synchronize();
  if (!resident.replayed->query()) ++earlier_.drops_in_flight;
  resident.engine->drop_graphs();
  add_counts(earlier_, resident.engine->counters());
  resident.engine.reset();
}

void ShapeBuckets::evaluate(const workloads::Batch& batch) {
  refuse_after_drop(dropped_);
  const c10::StreamGuard guard(stream_);
  step_.module_runner(nullptr);
  step_.evaluate(batch);
}

std::vector<NamedTensor> ShapeBuckets::outputs() { return step_outputs(step_); }

at::Tensor ShapeBuckets::losses() { return step_.losses().clone(); }

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
  return counters;
}

void ShapeBuckets::drop_graphs() {
  dropped_ = true;
  for (Resident& resident : residents_) drop(resident);
  residents_.clear();
  device_.empty_cache();
}

}  // namespace graphproof::engines
