// The graphs of an arm captured a second time, after its last step. Between the captures the host
// has moved on: to another step, another learning rate and other inputs. A graph that keeps a value
// of the host differs then, also if the value did not change in any step that was compared.
//
// A second engine captures the same training step while the first engine's graphs are alive, so
// that everything that is not the engine's own is at the same address. It is made without a
// warm-up, because the step has run often enough.
//
// If the captures differ, or something else is wrong with the graphs of the case
// (CaseScope::doubt), the nodes are written as text next to the evidence.
#pragma once

#include <map>
#include <string>

#include "suites/arms/arm.h"

namespace graphproof::suites {

/// What is captured again. The references outlive the call.
struct FirstCapture {
  const std::string& arm;
  const engines::EngineConfig& engine;
  workloads::TrainStep& step;
  const std::map<std::string, CapturedNodes>& graphs;  // by name
};

/// Captures again in step `index` and writes a line `second_capture` for each graph. All ranks call
/// it, and vote after each capture. Replays each graph as often as a step does. Throws
/// capture::DeviceError if a capture fails.
void run_second_capture(const CaseParts& parts, const FirstCapture& first, std::int64_t index,
                        const StepInput& input);

}  // namespace graphproof::suites
