#include "suites/arms/collective.h"

#include <chrono>
#include <cstdio>
#include <optional>
#include <sstream>

#include "fixtures/device/error.h"
#include "fixtures/device/nvtx.h"
#include "fixtures/device/operator_log.h"
#include "fixtures/inspect/address_registry.h"
#include "fixtures/inspect/host_copies.h"
#include "fixtures/inspect/poison.h"
#include "fixtures/inspect/tensor_digest.h"
#include "fixtures/tensors/torch.h"
#include "suites/case/arm_lines.h"
#include "workloads/training/collective.h"

namespace graphproof::suites {
namespace {

using Clock = std::chrono::steady_clock;
using fixtures::NamedTensor;

constexpr const char* kGraph = "collective";
constexpr const char* kClosedForm = "closed_form";

std::string hex(std::uint64_t address) {
  std::ostringstream text;
  text << "0x" << std::hex << address;
  return text.str();
}

}  // namespace

/// One arm, with its own buffers and, if it is a graph arm, its own graph.
class CollectiveArm {
 public:
  CollectiveArm(const CaseParts& parts, std::string name, bool graph, bool free)
      : parts_(parts),
        name_(std::move(name)),
        graphs_(graph),
        free_(free),
        device_(parts.device),
        addresses_(device_) {
    parts_.scope.enter(Phase::build, name_, 0);
    const c10::StreamGuard guard(parts_.stream);
    collective_ = std::make_unique<workloads::Collective>(*parts_.config.collective, device_);
    for (const workloads::BufferPlace& place : collective_->places())
      parts_.scope.write(record::PlacementLine{.arm = name_,
                                               .buffer = place.buffer,
                                               .bytes = place.bytes,
                                               .offset = place.offset,
                                               .span_bytes = place.span_bytes,
                                               .straddles = place.straddles});
  }

  const std::string& name() const { return name_; }

  /// Runs step `index` with the inputs of step `data`. Returns the result in host memory, or an
  /// empty list for a free arm.
  Snapshot run(std::int64_t index, std::int64_t data) {
    const fixtures::NvtxRange range(name_, index);
    const c10::StreamGuard guard(parts_.stream);
    const bool replays = graphs_ && index >= parts_.config.capture_step();
    parts_.scope.enter(!graphs_  ? Phase::eager
                       : replays ? Phase::replay
                                 : Phase::warmup,
                       name_, index);
    collective_->load(data);
    if (!replays) {
      collective_->issue();
    } else {
      if (!graph_) capture(index);
      replay(index);
    }
    return free_ ? Snapshot{} : finish(index, data);
  }

  /// Waits for the step and compares its result with the closed form.
  Snapshot finish(std::int64_t index, std::int64_t data) {
    const c10::StreamGuard guard(parts_.stream);
    parts_.device.synchronize(parts_.stream);
    if (graphs_ && index >= parts_.config.capture_step()) write_replay(index);
    const Snapshot left = fixtures::on_host({collective_->result()});
    const Snapshot want =
        fixtures::on_host({{collective_->result().name, collective_->expected(data)}});
    write_comparison(parts_, kClosedForm, name_, kClosedForm, index,
                     data == parts_.config.capture_step() ? "capture" : "fresh", want, left);
    return left;
  }

  void drop_graph() {
    if (!graph_) return;
    parts_.device.synchronize();
    graph_->reset();
    graph_.reset();
  }

  /// Votes at the boundary `capture` if no capture has voted, so that all ranks pass the same
  /// boundaries.
  void vote_if_not_captured() {
    if (!graphs_ || captured_) return;
    parts_.scope.boundary(Phase::capture);
    parts_.scope.vote(0);
    parts_.scope.boundary(Phase::replay);
  }

 private:
  std::vector<NamedTensor> buffers() const { return {collective_->input(), collective_->result()}; }

  void capture(std::int64_t index) {
    parts_.scope.enter(Phase::capture, name_, index);
    parts_.scope.boundary(Phase::capture);
    parts_.device.synchronize();
    const std::string before = fixtures::digest(buffers());
    const std::int64_t pool_before = parts_.device.memory().pool;
    const capture::CaptureMode mode = parts_.config.engine.capture_mode;
    auto graph = device_.make_graph();
    std::optional<capture::DeviceError> failure;
    const auto begin = Clock::now();
    {
      const capture::OperatorLog log;
      try {
        record(*graph, mode);
      } catch (const std::exception& error) {
        failure = capture::as_device_error(error, log.last());
      }
    }
    const double ms = std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
    // NCCL logs its buffer registrations to the standard output. Without the flush the log would be
    // lost if the rank hangs in the replay.
    std::fflush(stdout);
    captured_ = true;
    const capture::Census census = failure ? capture::Census{} : graph->census();
    parts_.scope.write(
        record::CaptureLine{.arm = name_,
                            .graph = kGraph,
                            .status = failure ? "error" : "ok",
                            .code = failure ? failure->code : 0,
                            .site = failure ? failure->call : "",
                            .message = failure ? failure->what() : "",
                            .mode = capture_mode_word(mode),
                            .ms = ms,
                            .nodes = census.total,
                            .census = census.nodes,
                            .signature = census.signature,
                            .unjoined = census.unjoined,
                            .pool_bytes = failure ? 0 : parts_.device.memory().pool - pool_before,
                            .pools = std::ssize(device_.counts().pools),
                            .generators = 0,
                            .generators_wanted = 0});
    if (!failure)
      parts_.scope.write(record::StateLine{
          .arm = name_, .what = "capture", .before = before, .after = fixtures::digest(buffers())});
    parts_.scope.vote(!failure ? 0 : failure->code != 0 ? failure->code : 1);
    if (failure) throw *failure;
    parts_.scope.boundary(Phase::replay);
    parts_.scope.enter(Phase::replay, name_, index);
    graph_ = std::move(graph);
    addresses_.capture(kGraph, buffers());
  }

  void record(capture::Graph& graph, capture::CaptureMode mode) {
    graph.capture_begin(device_.make_pool(), mode);
    try {
      collective_->issue();
    } catch (...) {
      // The capture must be ended after an error too. Its own error only repeats that there was an
      // earlier one.
      try {
        graph.capture_end();
      } catch (const std::exception&) {
      }
      throw;
    }
    graph.capture_end();
  }

  void replay(std::int64_t index) {
    if (!free_) {
      std::vector<record::MovedTensor> moved;
      for (const auto& tensor : addresses_.moved(kGraph, buffers()))
        moved.push_back(
            {.tensor = tensor.tensor, .captured = hex(tensor.captured), .now = hex(tensor.now)});
      parts_.scope.write(record::AddressLine{.arm = name_,
                                             .step = index,
                                             .graph = kGraph,
                                             .registered = addresses_.registered(kGraph),
                                             .moved = std::move(moved)});
      fixtures::poison({collective_->result()});
    }
    graph_->replay();
  }

  void write_replay(std::int64_t index) {
    const GraphCounts counts = device_.counts();
    const std::int64_t wanted = index - parts_.config.capture_step() + 1;
    parts_.scope.write(
        record::ReplayLine{.arm = name_,
                           .graph = kGraph,
                           .step = index,
                           .replays = counts.replays,
                           .fallbacks = std::max<std::int64_t>(0, wanted - counts.replays),
                           .recaptures = std::max<std::int64_t>(0, counts.captures_begun - 1)});
    if (free_) return;
    const std::vector<NamedTensor> result = {collective_->result()};
    parts_.scope.write(record::PoisonLine{.arm = name_,
                                          .step = index,
                                          .outputs = 1,
                                          .compared = 1,
                                          .bytes = fixtures::total_bytes(result),
                                          .canary_words = fixtures::canary_words(result)});
  }

  CaseParts parts_;
  const std::string name_;
  const bool graphs_, free_;
  WatchedDevice device_;
  fixtures::AddressRegistry addresses_;
  std::unique_ptr<workloads::Collective> collective_;
  std::unique_ptr<capture::Graph> graph_;
  bool captured_ = false;
};

CollectiveArms::CollectiveArms(const CaseParts& parts) : parts_(parts) {}
CollectiveArms::~CollectiveArms() = default;

CollectiveArm& CollectiveArms::arm(std::string name, bool graph, bool free) {
  kept_.push_back(std::make_unique<CollectiveArm>(parts_, std::move(name), graph, free));
  return *kept_.back();
}

void CollectiveArms::run() {
  run_sections(parts_, [this] { run_eager(); }, [this] { run_lockstep(); }, [this] { run_free(); });
}

void CollectiveArms::run_eager() {
  CountedCollectives collectives(parts_, "eager");
  CollectiveArm& first = arm("eager_a", false);
  CollectiveArm& second = arm("eager_b", false);
  for (std::int64_t step = 0; step < parts_.config.steps; ++step) {
    const Snapshot left = first.run(step, step), right = second.run(step, step);
    write_comparison(parts_, first.name(), second.name(), "eager_repeats", step,
                     step == parts_.config.capture_step() ? "capture" : "fresh", left, right);
  }
  collectives.write();
  kept_.clear();
}

void CollectiveArms::run_lockstep() {
  const std::int64_t steps = parts_.config.steps, captured = parts_.config.capture_step();
  const auto input = [captured](std::int64_t data) {
    return data == captured ? "capture" : "fresh";
  };
  std::vector<Snapshot> history;
  CollectiveArm& eager = arm("lockstep_eager", false);
  CollectiveArm& graph = arm("lockstep_graph", true);
  {
    parts_.scope.boundary(Phase::capture);  // the next vote of all ranks, also after a failure
    CountedCollectives collectives(parts_, "lockstep");
    for (std::int64_t step = 0; step <= steps; ++step) {
      const std::int64_t data = step < steps ? step : captured;
      const Snapshot left = eager.run(step, data);
      Snapshot right = graph.run(step, data);
      parts_.scope.enter(Phase::compare, graph.name(), step);
      write_comparison(parts_, eager.name(), graph.name(),
                       step < steps ? "lockstep" : "capture_inputs_last", step, input(data), left,
                       right);
      history.push_back(std::move(right));
    }
    graph.vote_if_not_captured();
    collectives.write();
  }
  CollectiveArm& again = arm("graph_b", true);
  parts_.scope.boundary(Phase::capture);
  CountedCollectives collectives(parts_, again.name());
  for (std::int64_t step = 0; step < steps; ++step) {
    const Snapshot right = again.run(step, step);
    parts_.scope.enter(Phase::compare, again.name(), step);
    write_comparison(parts_, graph.name(), again.name(), "graph_repeats", step, input(step),
                     history[static_cast<std::size_t>(step)], right);
  }
  again.vote_if_not_captured();
  collectives.write();
}

void CollectiveArms::run_free() {
  const std::int64_t last = parts_.config.steps - 1;
  CountedCollectives collectives(parts_, "free_run");
  CollectiveArm& eager = arm("free_eager", false, /*free=*/true);
  for (std::int64_t step = 0; step <= last; ++step) eager.run(step, step);
  const Snapshot left = eager.finish(last, last);
  CollectiveArm& graph = arm("free_graph", true, /*free=*/true);
  parts_.scope.boundary(Phase::capture);
  for (std::int64_t step = 0; step <= last; ++step) graph.run(step, step);
  const Snapshot right = graph.finish(last, last);
  graph.vote_if_not_captured();
  parts_.scope.enter(Phase::compare, graph.name(), last);
  write_comparison(parts_, eager.name(), graph.name(), "free_run", last, "fresh", left, right);
  collectives.write();
}

void CollectiveArms::drop_graphs() {
  for (const auto& arm : kept_) arm->drop_graph();
}

void CollectiveArms::drop_buffers() { kept_.clear(); }

}  // namespace graphproof::suites
