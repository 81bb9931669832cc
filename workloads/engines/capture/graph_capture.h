// One capture, as every engine does it: state digested before and after, generators registered, the
// refused operator named, the capture ended whatever happened, and a report for the observer.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "workloads/engines/capture/engine.h"

namespace graphproof::engines {

/// Tells the step that its calls are recorded, also when one of them throws.
class Recording {
 public:
  explicit Recording(workloads::TrainStep& step) : step_(step) { step_.recording(true); }
  ~Recording() { step_.recording(false); }
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;

 private:
  workloads::TrainStep& step_;
};

/// What captures have in common. References outlive it.
struct CaptureParts {
  const EngineConfig& config;
  capture::Device& device;
  workloads::TrainStep& step;
  Observer& observer;
};

struct CaptureRequest {
  std::string graph;  // for evidence
  capture::Pool pool;
  std::function<void()> work;  // enqueues what the graph holds; called once
  std::int64_t warmups = 0;    // eager runs of the work so far, for evidence
  /// Runs right before the capture; and puts back what it changed. Both may be empty.
  std::function<void()> warm_up = {}, undo_warm_up = {};
  const workloads::ModuleCall* module =
      nullptr;  // whose work this is; null: a step's, an optimizer's
};

/// Waits for the device, warms up, registers every generator of the step and captures the work on
/// the current stream. It runs nothing: the caller replays. On failure the observer gets a report
/// with status "error" and capture::DeviceError is thrown.
std::unique_ptr<capture::Graph> capture_graph(const CaptureParts& parts, CaptureRequest request);

/// The pieces of it. A graph with every generator of the step:
std::unique_ptr<capture::Graph> make_graph(const CaptureParts& parts);
/// The capture of `work`. Ends it whatever happens and throws what went wrong.
void record(const CaptureParts& parts, const capture::Pool& pool, const std::function<void()>& work,
            capture::Graph& graph);

}  // namespace graphproof::engines
