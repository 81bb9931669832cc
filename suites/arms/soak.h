// The long job (axis soak_steps): failures that only hundreds of replays show, such as memory and
// handles that every replay or recapture loses, and numbers that drift after a counter has wrapped.
//
// A job runs the cycles of workloads/soak/soak_plan.h with one model: in each of them new graphs
// are warmed up, captured, replayed with changing inputs, learning rates and, with shape buckets,
// lengths, a batch is evaluated, a checkpoint is saved and later loaded under the live graphs, and
// the graphs are destroyed. Between two samples nothing waits for the device.
//
// The job runs eagerly first and then from graphs, each time alone, so that what one of them loses
// is not counted for the other. Both compute the same steps and are compared at the end of each
// cycle, and the digests of their parameters also where loading the checkpoint undoes the steps
// since it was saved, so a single wrong replay shows in the parameters.
#pragma once

#include "suites/arms/arm.h"

namespace graphproof::suites {

/// Runs the jobs soak_eager and soak_graph. At the end of every cycle compares their losses,
/// gradients, parameters and masks (comparison soak), and writes of each job a line `cycle` and a
/// line `memory` after the graphs were destroyed; besides a line `memory` for every sample. Keeps
/// the eager results of all cycles in host memory. REQUIRES: a case with soak_steps.
void run_soak(const CaseParts& parts);

}  // namespace graphproof::suites
