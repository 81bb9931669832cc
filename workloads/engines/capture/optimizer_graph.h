// The axis optimizer_graph: the optimizer step has its own graph, in addition to those of an engine
// that otherwise leaves the optimizer eager (Megatron-LM's --optimizer-cuda-graph).
//
// Contract:
// - Without the axis every optimizer step runs eagerly and nothing is captured.
// - The engine captures the graph once, after at least one eager step, in the step that captures
//   its other graphs. It uses the pool of its own graphs, which run before the optimizer in every
//   step.
// - Learning rate, step number, loss scale and norm are in device memory, so a replay reads the
//   values of its own step.
// - A failed capture throws capture::DeviceError, and the engine tries again in the next step.
#pragma once

#include <memory>

#include "workloads/engines/capture/engine.h"
#include "workloads/engines/capture/graph_capture.h"

namespace graphproof::engines {

/// Runs the optimizer steps of one engine. Used by the engine's thread.
class OptimizerGraph {
 public:
  explicit OptimizerGraph(const CaptureParts& parts) : parts_(parts) {}
  OptimizerGraph(const OptimizerGraph&) = delete;
  OptimizerGraph& operator=(const OptimizerGraph&) = delete;

  /// One optimizer step on the current stream: eager before the capture, replayed afterwards. The
  /// observer is called around replays.
  void step();
  /// Captures the graph, without running it. Does nothing without the axis or if there is a graph
  /// already.
  void capture(const capture::Pool& pool);
  /// Adds its launches, captures and graph to `counters`.
  void add_to(Counters& counters) const;
  /// Destroys the graph. REQUIRES: the device has finished. Idempotent.
  void drop();

 private:
  CaptureParts parts_;
  std::unique_ptr<capture::Graph> graph_;
  std::int64_t eager_steps_ = 0, captures_ = 0, earlier_replays_ = 0;
};

}  // namespace graphproof::engines
