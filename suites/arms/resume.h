// The schedule `resume`: a job saves a checkpoint between two replays and continues. A new model
// loads the checkpoint, warms up, captures and replays to the end (comparison resumed). Then it
// loads the checkpoint again, with its graphs alive, and replays the same steps (comparison
// loaded). Both must have the results of the first job. The new model has another seed, so that
// only the checkpoint can make it equal.
#pragma once

#include <span>
#include <vector>

#include "suites/arms/arm.h"
#include "workloads/training/checkpoint.h"

namespace graphproof::suites {

/// Compares steps resume_step() .. steps-1 with `left`, the results of lockstep_graph by step;
/// empty ones are not compared. Writes the `compare` lines and one line `resumed`.
void run_resumed(const CaseParts& parts, const std::vector<StepInput>& inputs,
                 std::span<const Snapshot> left, const workloads::Checkpoint& checkpoint);

}  // namespace graphproof::suites
