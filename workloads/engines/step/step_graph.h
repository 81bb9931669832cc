// One graph of a training step: captures it once, reports the capture to the observer and replays
// it with calls of the observer. Used by the engines that capture a whole step. The caller's `work`
// decides which part of the step the graph holds.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "workloads/engines/capture/engine.h"

namespace graphproof::engines {

/// Used by the engine's thread.
class StepGraph {
 public:
  /// `work` enqueues on the current stream what the graph holds; it is called once per capture.
  /// `name` is for evidence. `observer` may be null; what is referred to outlives it.
  StepGraph(std::string name, std::function<void()> work, const EngineConfig& config,
            capture::Device& device, workloads::TrainStep& step, Observer* observer);
  StepGraph(const StepGraph&) = delete;
  StepGraph& operator=(const StepGraph&) = delete;

  /// Captures `work` into its own pool; see capture_graph(). `warmups`: how often the work ran
  /// eagerly so far. The caller must replay the graph for the current step. After a failure there
  /// is no graph.
  void capture(std::int64_t warmups);
  /// Launches the graph on the current stream, between calls of the observer. Does not wait for the
  /// device. REQUIRES: captured().
  void replay(const std::vector<NamedTensor>& statics, const std::vector<NamedTensor>& outputs);
  /// Only launches the graph, for the speed floor.
  void launch() { graph_->replay(); }
  bool captured() const { return captured_; }
  const capture::Pool& pool() const { return pool_; }  // of the latest capture
  /// Waits for the device and destroys the graph. A later capture starts with a fresh pool.
  /// Idempotent.
  void drop();

  std::int64_t captures() const { return captures_; }
  /// The launches of all graphs so far, dropped ones included.
  std::int64_t replays() const { return earlier_replays_ + (graph_ ? graph_->replays() : 0); }

 private:
  std::string name_;
  std::function<void()> work_;
  EngineConfig config_;
  capture::Device& device_;
  workloads::TrainStep& step_;
  Observer silent_;
  Observer* observer_;
  capture::Pool pool_;
  std::unique_ptr<capture::Graph> graph_;
  bool captured_ = false;
  std::int64_t captures_ = 0, earlier_replays_ = 0;
};

}  // namespace graphproof::engines
