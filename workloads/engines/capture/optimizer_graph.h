// The axis optimizer_graph: the optimizer step as a graph of its own, beside those of an engine
// that leaves it eager, as Megatron-LM's --optimizer-cuda-graph.
//
// Contract:
// - Without the axis every step runs eagerly and nothing is captured.
// - The engine captures it once, in the step that captures its other graphs and after at least one
// eager step, into a pool
//   that it chooses: that of its own graphs, which run before it in every step.
// - Rate, step number, loss scale and norm are device memory, so a replay takes those of its own
// step.
// - A failed capture throws capture::DeviceError, and the engine tries again with the next step.
#pragma once

#include <memory>

#include "workloads/engines/capture/engine.h"
#include "workloads/engines/capture/graph_capture.h"

namespace graphproof::engines {

class OptimizerGraph {
 public:
  explicit OptimizerGraph(const CaptureParts& parts) : parts_(parts) {}
  OptimizerGraph(const OptimizerGraph&) = delete;
  OptimizerGraph& operator=(const OptimizerGraph&) = delete;

  /// One optimizer step on the current stream: replayed once captured, eager before. The observer
  /// sees replays.
  void step();
  /// Captures and runs nothing. Without the axis, or where it is captured already, it does nothing.
  void capture(const capture::Pool& pool);
  /// Adds its launches, captures and graph.
  void add_to(Counters& counters) const;
  /// REQUIRES: the device has finished. Idempotent.
  void drop();

 private:
  CaptureParts parts_;
  std::unique_ptr<capture::Graph> graph_;
  std::int64_t eager_steps_ = 0, captures_ = 0, earlier_replays_ = 0;
};

}  // namespace graphproof::engines
