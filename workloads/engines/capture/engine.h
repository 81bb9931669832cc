// The interface of all engines. An engine runs training steps, eagerly or from graphs. What each
// one captures, copies, aliases and refuses is at the top of its own header.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fixtures/device/device.h"
#include "workloads/engine_traits/engine_traits.h"
#include "workloads/training/train_step.h"

namespace graphproof::engines {

using workloads::NamedTensor;

/// The report of one capture. status is "ok" or "error"; code, site (the operator or call that was
/// refused) and message come from the device. The counters are TrainStep::layer_counter(), read
/// before and after the capture, without a replay.
struct CaptureReport {
  std::string graph;
  std::string status = "ok";
  int code = 0;
  std::string site, message;
  capture::CaptureMode mode = capture::CaptureMode::thread_local_;
  double ms = 0;
  capture::Census census;
  std::int64_t pool_bytes = 0;
  /// Eager runs of the captured work before the capture: steps, or passes of a module.
  std::int64_t warmups = 0;
  std::vector<std::int64_t> counter_before, counter_after;
  /// TrainStep::module_runs() before the capture, for a part that is captured alone.
  std::optional<workloads::RunCount> module_runs;
  /// The addresses of CaptureRequest::owned_inputs.
  std::vector<std::uint64_t> owned_inputs = {};
  /// Operators that other threads than the capturing one called during the capture, by the name of
  /// the thread.
  std::map<std::string, std::int64_t> other_threads = {};
  /// The distance in bytes of the first block that the work allocated from the first one of the
  /// capture; only with axis placement per_rank.
  std::optional<std::int64_t> pool_offset = {};
};

/// Called by an engine around captures and replays. The harness writes evidence in these calls.
/// Every call is outside a capture and with the engine's stream current. The default does nothing.
class Observer {
 public:
  virtual ~Observer() = default;
  /// `state`: the parameters and everything else that a capture must leave unchanged.
  virtual void before_capture(const std::string& /*graph*/,
                              const std::vector<NamedTensor>& /*state*/) {}
  virtual void after_capture(const CaptureReport&, const std::vector<NamedTensor>& /*state*/) {}
  /// `statics`: the tensors whose addresses the graph has captured, as the engine would pass them
  /// now. `outputs`: the tensors that the replay must write completely, so poisoning them is
  /// harmless.
  virtual void before_replay(const std::string& /*graph*/,
                             const std::vector<NamedTensor>& /*statics*/,
                             const std::vector<NamedTensor>& /*outputs*/) {}
  virtual void after_replay(const std::string& /*graph*/,
                            const std::vector<NamedTensor>& /*outputs*/) {}
  /// Called around each replayed step of an engine that launches several graphs in a step, in
  /// addition to the calls around each graph. `statics` are the tensors on which every replay
  /// relies, `outputs` those that the whole step must write completely.
  virtual void before_step(const std::vector<NamedTensor>& /*statics*/,
                           const std::vector<NamedTensor>& /*outputs*/) {}
  virtual void after_step(const std::vector<NamedTensor>& /*outputs*/) {}
  /// A capture failed and was reset, and the engine tries again in the same step. pool_bytes is the
  /// memory that the failed capture left allocated.
  virtual void failed_capture(const CaptureReport&) {}
};

/// What an engine has done since it was made.
struct Counters {
  std::int64_t steps = 0;      // calls of step()
  std::int64_t eager = 0;      // steps that ran eagerly as planned (warm-up, impl none)
  std::int64_t replays = 0;    // graph launches, from capture::Graph::replays()
  std::int64_t fallbacks = 0;  // eager steps after the capture point, as the engine reports them
  std::int64_t reruns = 0;     // steps that ran a second time (step/paged_stash.h)
  std::int64_t captures = 0;   // attempted captures
  std::int64_t graphs = 0;     // graphs that exist now
  /// Graph launches in a replayed step; 0 before the first capture.
  std::int64_t launches_per_step = 0;
  std::int64_t out_of_order = 0;     // launches in an order that a shared pool does not allow
  std::int64_t drops_in_flight = 0;  // graphs dropped while the device still ran them
};

/// The values of axis pool. per_microbatch: the graphs of one outstanding microbatch share a pool.
enum class PoolSharing { single, per_microbatch, per_graph };

/// The values of axis captured_models: whose layers an engine of modules captures.
enum class CapturedModels { both, encoder, decoder };

class Executables;

/// Which engine to make, and how.
struct EngineConfig {
  std::string impl;  // a row of workloads/engine_traits/engine_traits.h
  /// The modules that an engine of modules captures; empty: the whole layer.
  std::vector<workloads::ModuleKind> modules = {};
  CapturedModels captured_models = CapturedModels::both;
  PoolSharing pool = PoolSharing::single;  // for an engine that chooses pools
  /// Eager steps before the capture. For local: eager passes of each module immediately before its
  /// capture, as in Megatron-LM.
  std::int64_t warmup_steps = 2;
  capture::CaptureMode capture_mode = capture::CaptureMode::thread_local_;
  bool optimizer_graph = false;  // optimizer_graph.h; manual has the optimizer in its one graph
  /// Where executable graphs of dropped graphs are kept for later captures of the same name, which
  /// update them (executables.h); outlives the engine. Null: every capture instantiates.
  Executables* executables = nullptr;
  /// Before a replay, check the inputs of the call, the order of launches in the pool and the
  /// parameters. Off only where a bench measures the cost of the checks: a call that does not fit
  /// would then replay wrong work.
  bool checks = true;
};

/// Throws std::logic_error if `dropped`: an engine takes no step after drop_graphs().
void refuse_after_drop(bool dropped);

/// Runs the steps of one TrainStep. Used by one thread.
class Engine {
 public:
  virtual ~Engine() = default;
  /// One training step on the engine's stream: first eager, then captured once, then replayed. The
  /// engine's header specifies which steps, and whether `batch` is copied. Does not wait for the
  /// device, except to capture.
  virtual void step(const workloads::Batch& batch, double learning_rate) = 0;
  /// The speed floor of step(): the same graphs and the same eager device work, with consecutive
  /// graphs launched back to back, without observer, checks and autograd. Trains as step() does.
  /// REQUIRES: a step() has captured. Throws std::logic_error for engines without a floor.
  virtual void floor_step(const workloads::Batch& batch, double learning_rate);
  /// TrainStep::evaluate() on the engine's stream, between two steps: eager, or captured once and
  /// replayed, as the engine's header specifies. Does not wait for the device, except to capture.
  virtual void evaluate(const workloads::Batch& batch) = 0;
  /// The tensors that are compared after a step: losses and gradients as the engine returns them,
  /// and parameters.
  virtual std::vector<NamedTensor> outputs() = 0;
  /// The losses [M] of the latest step, in a tensor that the caller owns and later steps do not
  /// change. The copy is enqueued on the current stream.
  virtual at::Tensor losses() = 0;
  virtual Counters counters() const = 0;
  /// Runs the parts of the model for an engine that captures modules; null for other engines.
  virtual workloads::ModuleRunner* module_runner() { return nullptr; }
  /// Drops the graphs after waiting for the last replay. Idempotent; step() is not allowed
  /// afterwards.
  virtual void drop_graphs() = 0;
};

/// REQUIRES: `step` was built with `stream` current and outlives the engine. Every batch passed to
/// step() was made with `stream` current, and the caller keeps it until the device has finished
/// that step. `observer` may be null. Throws std::invalid_argument for an impl that has no engine
/// and for everything that the engine's header lists as refused.
std::unique_ptr<Engine> make_engine(const EngineConfig& config, capture::Device& device,
                                    c10::Stream stream, workloads::TrainStep& step,
                                    Observer* observer);

}  // namespace graphproof::engines
