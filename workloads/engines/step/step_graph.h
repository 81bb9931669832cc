// One graph of a training step: captures it once, reports what the capture did, replays it under
// the observer's eyes. Used by the engines that capture a whole step; which part of the step it
// holds is the caller's `work`.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "workloads/engines/capture/engine.h"

namespace graphproof::engines {

class StepGraph {
 public:
  /// `work` enqueues what the graph holds on the current stream; called once per capture. `name` is
  /// for evidence.
  StepGraph(std::string name, std::function<void()> work, const EngineConfig& config,
            capture::Device& device, workloads::TrainStep& step, Observer* observer);
  StepGraph(const StepGraph&) = delete;
  StepGraph& operator=(const StepGraph&) = delete;

  /// Captures `work` into a pool of its own; see capture_graph(). `warmups`: how often it ran
  /// eagerly so far. The caller replays for the step in hand. On failure there is no graph.
  void capture(std::int64_t warmups);
  /// Launches it on the current stream between the observer's calls. Does not wait for the device.
  /// REQUIRES: captured().
  void replay(const std::vector<NamedTensor>& statics, const std::vector<NamedTensor>& outputs);
  /// The launch alone, for the speed floor.
  void launch() { graph_->replay(); }
  bool captured() const { return captured_; }
  const capture::Pool& pool() const { return pool_; }  // of the latest capture
  /// Waits for the device and destroys the graph. A later capture starts with a fresh pool.
  /// Idempotent.
  void drop();

  std::int64_t captures() const { return captures_; }
  /// Launches of all graphs so far, as the graphs themselves count them.
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
