// How often the work of each part has run on the host: in eager steps, warm-ups and captures, and
// not in replays. Counted where the work is, so that nobody has to believe an engine that says how
// often it let a part run before its capture.
#pragma once

#include <cstdint>
#include <map>
#include <utility>

#include "workloads/forward/module_runner.h"

namespace graphproof::workloads {

struct RunCount {
  std::int64_t forwards = 0;
  std::int64_t backwards = 0;  // of these, whose backward reached the part's outputs
};

/// Of parts that a runner ran. All microbatches count together. No two threads may use it at once:
/// backward runs on threads of autograd's, while the thread of the forward waits for it.
class ModuleRuns {
 public:
  RunCount& of(const ModuleCall& call) { return runs_[{call.kind, call.layer}]; }

 private:
  std::map<std::pair<ModuleKind, std::int64_t>, RunCount>
      runs_;  // whose elements stay where they are
};

/// Counts a forward of a part, and its backward as soon as that reaches the first of `outputs` that
/// has one.
inline void count_run(RunCount& runs, const std::vector<at::Tensor>& outputs) {
  ++runs.forwards;
  for (const at::Tensor& output : outputs) {
    if (!output.requires_grad()) continue;
    output.register_hook([&runs](const at::Tensor&) { ++runs.backwards; });
    return;
  }
}

}  // namespace graphproof::workloads
