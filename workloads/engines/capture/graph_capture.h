// One capture, in the way that all engines share: the observer sees the state before and after, the
// generators are registered, a refused operator is named, the capture ends even after an error, and
// the observer gets a report.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "workloads/engines/capture/engine.h"

namespace graphproof::engines {

/// TrainStep::recording() is set while this object exists, also if a call throws.
class Recording {
 public:
  explicit Recording(workloads::TrainStep& step) : step_(step) { step_.recording(true); }
  ~Recording() { step_.recording(false); }
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;

 private:
  workloads::TrainStep& step_;
};

/// What all captures of an engine have in common. The references outlive it.
struct CaptureParts {
  const EngineConfig& config;
  capture::Device& device;
  workloads::TrainStep& step;
  Observer& observer;
};

/// What one capture records.
struct CaptureRequest {
  std::string graph;  // for evidence
  capture::Pool pool;
  std::function<void()> work;  // enqueues what the graph holds; called once
  std::int64_t warmups = 0;    // eager runs of the work so far, for evidence
  /// Work that runs immediately before the capture, and what restores the state that it changed.
  /// Both may be empty.
  std::function<void()> warm_up = {}, undo_warm_up = {};
  /// The module whose work it is; null for a whole step or an optimizer step.
  const workloads::ModuleCall* module = nullptr;
  /// Its static inputs that the engine owns, outside the pool; for evidence.
  std::vector<at::Tensor> owned_inputs = {};
};

/// Waits for the device, warms up, registers every generator of the step and captures the work on
/// the current stream. Updates the executable graph that EngineConfig::executables has under the
/// name of the graph; instantiates if there is none or the device refuses the update. The capture
/// runs nothing: the caller replays. On failure the observer gets a
/// report with status "error", and capture::DeviceError is thrown.
std::unique_ptr<capture::Graph> capture_graph(const CaptureParts& parts, CaptureRequest request);

/// Makes a graph with which every generator of the step is registered. A piece of capture_graph().
std::unique_ptr<capture::Graph> make_graph(const CaptureParts& parts);
/// Captures `work` into `graph`. Ends the capture even after an error, and rethrows the error. With
/// axis placement per_rank what the work allocates in the pool lies further behind on ranks with an
/// odd number, and the distance of its first block from the first one of the capture is returned. A
/// piece of capture_graph().
std::optional<std::int64_t> record(const CaptureParts& parts, const capture::Pool& pool,
                                   const std::function<void()>& work, capture::Graph& graph);

}  // namespace graphproof::engines
