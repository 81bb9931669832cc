// What all arms of a case share: the parts that they are built from, how closely they are
// inspected, and the results of their steps.
#pragma once

#include <filesystem>
#include <functional>
#include <vector>

#include "fixtures/comm/process_groups.h"
#include "fixtures/device/device.h"
#include "fixtures/tensors/named_tensor.h"
#include "suites/case/case_scope.h"
#include "suites/case/step_config.h"

namespace graphproof::suites {

/// What all arms of a case are built from. References outlive the arms.
struct CaseParts {
  CaseScope& scope;
  capture::Device& device;
  const StepConfig& config;
  c10::Stream stream;           // where everything of the case runs and is captured
  comm::ProcessGroups* groups;  // null in a test that runs a single rank without MPI
  /// Where a job of the case resumes, if not in this process. `run` starts the process, in which
  /// the job reads the files that this rank has left in `folder`, and returns after its end.
  struct NewProcess {
    std::filesystem::path folder;
    std::function<void()> run;
  };
  const NewProcess* new_process = nullptr;
};

/// How closely an arm is inspected. free: nothing waits for the device between the first and the
/// last step, except captures. full: each step writes lines about its results, learning rate,
/// random numbers and replays. ranks: as full, with lines about what ranks must have in common
/// (rank_lines.h) and about every update (update_lines.h).
enum class Watch { free, full, ranks };

/// The results of a step in host memory: losses, gradients and parameters as the engine returns
/// them, then dropout masks; of a step of inference those of Decoder::results().
using Snapshot = std::vector<fixtures::NamedTensor>;

}  // namespace graphproof::suites
