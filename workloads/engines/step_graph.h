// One graph of a training step: captures it once, reports what the capture did, replays it under the observer's eyes.
// Used by the engines that capture a whole step; which part of the step it holds is the caller's `work`.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "workloads/engines/engine.h"

namespace graphproof::engines {

class StepGraph {
 public:
  /// `work` enqueues what the graph holds on the current stream; called once per capture. `name` is for evidence.
  StepGraph(std::string name, std::function<void()> work, const EngineConfig& config, capture::Device& device,
            workloads::TrainStep& step, Observer* observer);
  StepGraph(const StepGraph&) = delete;
  StepGraph& operator=(const StepGraph&) = delete;

  /// Waits for the device, registers every generator of the step, captures `work` on the current stream into a pool of
  /// its own and tells the observer. It runs nothing: the caller replays for the step in hand. On failure the observer
  /// gets a report with status "error", there is no graph, and capture::DeviceError is thrown.
  void capture();
  /// Launches it on the current stream between the observer's calls. Does not wait for the device.
  /// REQUIRES: captured().
  void replay(const std::vector<NamedTensor>& statics, const std::vector<NamedTensor>& outputs);
  bool captured() const { return captured_; }
  /// Waits for the device and destroys the graph. A later capture starts with a fresh pool. Idempotent.
  void drop();

  std::int64_t captures() const { return captures_; }
  /// Launches of all graphs so far, as the graphs themselves count them.
  std::int64_t replays() const { return earlier_replays_ + (graph_ ? graph_->replays() : 0); }

 private:
  void record(capture::Graph& graph);
  std::vector<std::int64_t> read_counter();

  std::string name_;
  std::function<void()> work_;
  EngineConfig config_;
  capture::Device& device_;
  workloads::TrainStep& step_;
  Observer silent_;
  Observer* observer_;
  std::unique_ptr<capture::Graph> graph_;
  bool captured_ = false;
  std::int64_t captures_ = 0, earlier_replays_ = 0;
};

}  // namespace graphproof::engines
