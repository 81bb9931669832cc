// An engine runs training steps, eager or from graphs. All engines share this face; what each one
// captures, copies, aliases and refuses stands at the top of its own header.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fixtures/device/device.h"
#include "workloads/engine_traits/engine_traits.h"
#include "workloads/training/train_step.h"

namespace graphproof::engines {

using workloads::NamedTensor;

/// What one capture did. status is "ok" or "error"; code, site (the operator or call that was
/// refused) and message are the device's. Counters are TrainStep::layer_counter() read before and
/// after the capture, without a replay.
struct CaptureReport {
  std::string graph;
  std::string status = "ok";
  int code = 0;
  std::string site, message;
  capture::CaptureMode mode = capture::CaptureMode::thread_local_;
  double ms = 0;
  capture::Census census;
  std::int64_t pool_bytes = 0;
  std::int64_t warmups =
      0;  // eager runs of the captured work before it: steps, or passes of a module
  std::vector<std::int64_t> counter_before, counter_after;
  std::optional<workloads::RunCount>
      module_runs;  // of a part that is captured alone, before the capture: TrainStep::module_runs
};

/// Called by an engine around captures and replays; the harness writes evidence from here. Every
/// call is outside a capture, on the engine's stream. The default does nothing, which is what a
/// free run uses.
class Observer {
 public:
  virtual ~Observer() = default;
  /// `state`: parameters and everything else that a capture must leave as it found it.
  virtual void before_capture(const std::string& /*graph*/,
                              const std::vector<NamedTensor>& /*state*/) {}
  virtual void after_capture(const CaptureReport&, const std::vector<NamedTensor>& /*state*/) {}
  /// `statics`: tensors whose addresses the graph has captured, as the engine would pass them now.
  /// `outputs`: tensors that the replay must write completely, so poisoning them is harmless.
  virtual void before_replay(const std::string& /*graph*/,
                             const std::vector<NamedTensor>& /*statics*/,
                             const std::vector<NamedTensor>& /*outputs*/) {}
  virtual void after_replay(const std::string& /*graph*/,
                            const std::vector<NamedTensor>& /*outputs*/) {}
  /// Around each replayed step of an engine that needs many graphs for one, beside the calls around
  /// each of them: `statics` are what every replay relies on, `outputs` what the step as a whole
  /// must write completely.
  virtual void before_step(const std::vector<NamedTensor>& /*statics*/,
                           const std::vector<NamedTensor>& /*outputs*/) {}
  virtual void after_step(const std::vector<NamedTensor>& /*outputs*/) {}
  /// A capture that failed and was reset, and after which the engine tries again in the same step.
  /// pool_bytes is what stayed.
  virtual void failed_capture(const CaptureReport&) {}
};

struct Counters {
  std::int64_t steps = 0;    // calls of step()
  std::int64_t eager = 0;    // of them run eagerly by plan (warm-up, impl none)
  std::int64_t replays = 0;  // graph launches, from capture::Graph::replays()
  std::int64_t fallbacks =
      0;  // steps after the capture point that ran eagerly, as the engine admits
  std::int64_t captures = 0;  // captures tried
  std::int64_t graphs = 0;    // graphs that are alive
  std::int64_t launches_per_step =
      0;  // graph launches that a replayed step needs; 0 before the first capture
  std::int64_t out_of_order = 0;     // launches in another order than a shared pool allows
  std::int64_t drops_in_flight = 0;  // graphs dropped while the device still ran them
};

/// The axis pool. per_microbatch: graphs of one outstanding microbatch share a pool.
enum class PoolSharing { single, per_microbatch, per_graph };

struct EngineConfig {
  std::string impl;  // a row of workloads/engine_traits/engine_traits.h
  /// What an engine that captures modules captures; empty is the whole layer.
  std::vector<workloads::ModuleKind> modules = {};
  PoolSharing pool = PoolSharing::single;  // of an engine that chooses pools
  /// Eager steps before the capture; local: eager passes of each module right before its capture,
  /// as upstream.
  std::int64_t warmup_steps = 2;
  capture::CaptureMode capture_mode = capture::CaptureMode::thread_local_;
  bool optimizer_graph = false;  // optimizer_graph.h; manual has the optimizer in its one graph
  /// Whether a call's inputs, its turn in the pool and its parameters are looked at before a
  /// replay. Off only where a bench measures what that costs: a call that does not fit then replays
  /// something else.
  bool checks = true;
};

/// What step() of an engine throws after drop_graphs(): std::logic_error.
void refuse_after_drop(bool dropped);

class Engine {
 public:
  virtual ~Engine() = default;
  /// One training step on the engine's stream: eager at first, then captured once, then replayed;
  /// the engine's header says which steps, and whether `batch` is copied. Does not wait for the
  /// device, save to capture.
  virtual void step(const workloads::Batch& batch, double learning_rate) = 0;
  /// The speed floor of step(): the same graphs and the same eager device work, where consecutive
  /// graphs are launched back to back, unseen by observer, checks and autograd. Trains as step()
  /// does. REQUIRES: a step() has captured. std::logic_error of engines that have none.
  virtual void floor_step(const workloads::Batch& batch, double learning_rate);
  /// TrainStep::evaluate() on the engine's stream, between two steps: eager, or captured once and
  /// replayed, as the engine's header says. Does not wait for the device, save to capture.
  virtual void evaluate(const workloads::Batch& batch) = 0;
  /// What is compared after a step: losses and gradients as the engine hands them out, and
  /// parameters.
  virtual std::vector<NamedTensor> outputs() = 0;
  /// The latest step's losses [M] for whoever keeps them: a tensor of its own that later steps
  /// leave alone. Enqueued on the current stream.
  virtual at::Tensor losses() = 0;
  virtual Counters counters() const = 0;
  /// What runs parts of the model, of an engine that captures modules; null for the others.
  virtual workloads::ModuleRunner* module_runner() { return nullptr; }
  /// Drops the graphs after waiting for the last replay. Idempotent; step() is not allowed
  /// afterwards.
  virtual void drop_graphs() = 0;
};

/// REQUIRES: `step` was built with `stream` current, and outlives the engine. `observer` may be
/// null. A batch given to step() was made with `stream` current and is kept until the device has
/// finished that step. Throws std::invalid_argument for an impl that has no engine and for what the
/// engine's header says it refuses.
std::unique_ptr<Engine> make_engine(const EngineConfig& config, capture::Device& device,
                                    c10::Stream stream, workloads::TrainStep& step,
                                    Observer* observer);

}  // namespace graphproof::engines
