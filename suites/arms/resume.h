// The schedule `resume`: between two replays a job saves a checkpoint and goes on. A fresh model,
// of another seed so that nothing else makes the two alike, loads it, warms up, captures and
// replays to the end (subject resumed); then it loads it once more, under its live graphs, and
// replays the same steps (subject loaded). Both must leave what the first job left.
#pragma once

#include <span>
#include <vector>

#include "suites/arms/arm.h"
#include "workloads/training/checkpoint.h"

namespace graphproof::suites {

/// Compares steps resume_step() .. steps-1 with `left`, what lockstep_graph left in each step; an
/// empty one is not compared. Writes the `compare` lines and one `resumed` line.
void run_resumed(const CaseParts& parts, const std::vector<StepInput>& inputs,
                 std::span<const Snapshot> left, const workloads::Checkpoint& checkpoint);

}  // namespace graphproof::suites
