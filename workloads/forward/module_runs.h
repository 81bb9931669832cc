// How often the work of each part has run on the host: in eager steps, warm-ups and captures, but
// not in replays. Counted by the work itself, so that the number of runs before a capture does not
// rest on the engine's own account.
#pragma once

#include <cstdint>
#include <map>
#include <utility>

#include "workloads/forward/module_runner.h"

namespace graphproof::workloads {

/// The runs of one part.
struct RunCount {
  std::int64_t forwards = 0;
  std::int64_t backwards = 0;  // forwards whose backward has reached the outputs of the part
};

/// The counts of all parts that a runner ran, over all microbatches. Not thread-safe: backwards
/// count on threads of autograd while the thread of the forward waits for them.
class ModuleRuns {
 public:
  RunCount& of(const ModuleCall& call) { return runs_[{call.kind, call.layer}]; }

 private:
  // References to elements of a std::map stay valid.
  std::map<std::pair<ModuleKind, std::int64_t>, RunCount> runs_;
};

/// Counts a forward, and later its backward when that reaches the first of `outputs` that requires
/// a gradient.
inline void count_run(RunCount& runs, const std::vector<at::Tensor>& outputs) {
  ++runs.forwards;
  for (const at::Tensor& output : outputs) {
    if (!output.requires_grad()) continue;
    output.register_hook([&runs](const at::Tensor&) { ++runs.backwards; });
    return;
  }
}

}  // namespace graphproof::workloads
