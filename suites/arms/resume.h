// The schedule `resume`: a job saves a checkpoint between two replays and continues. A new model
// loads the checkpoint, warms up, captures and replays to the end (comparison resumed). It has
// another seed, so that only the checkpoint can make it equal.
//
// In one process it then loads the checkpoint again, with its graphs alive, and replays the same
// steps (comparison loaded). With `resume_in: new_process` the new model is in a process of its
// own, which has nothing of the first job but files. All must have the results of the first job.
#pragma once

#include <filesystem>
#include <functional>
#include <span>
#include <vector>

#include "suites/arms/arm.h"
#include "workloads/faults/hooks/fault_hooks.h"
#include "workloads/training/checkpoint.h"

namespace graphproof::suites {

/// Compares steps resume_step() .. steps-1 with `left`, the results of lockstep_graph by step;
/// empty ones are not compared. Writes the `compare` lines and one line `resumed`, here or in the
/// new process that the case asks for (CaseParts::new_process).
void run_resumed(const CaseParts& parts, const std::vector<StepInput>& inputs,
                 std::span<const Snapshot> left, const workloads::Checkpoint& checkpoint);

/// In the new process: the job that reads what run_resumed() has left in `folder` for this rank.
/// `before_loading`: see faults::RunPlan.
void resume_from_files(const CaseParts& parts, const std::filesystem::path& folder,
                       const std::function<void(const faults::ResumedJob&)>& before_loading);

}  // namespace graphproof::suites
