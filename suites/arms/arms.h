// The arms of a case, in the order in which they run. Each function writes evidence and decides
// nothing: the judge decides whether two arms are equal enough.
#pragma once

#include <memory>
#include <vector>

#include "suites/arms/arm.h"
#include "suites/arms/history.h"

namespace graphproof::suites {

/// The inputs of steps 0 .. steps-1, and then those of the capture again. They are made before any
/// arm runs and live until the last one has ended, so that a static input that is wrongly rebound
/// cannot get its old address by chance.
std::vector<StepInput> make_inputs(const CaseParts& parts);

/// Runs eager_a and returns its results, which solo_eager must repeat (solo.h); this shows how
/// equal two eager runs are. Work is delayed before two of the steps (Device::delay_work), so that
/// work which is unordered and only happens to finish in time changes the results.
History run_eager(const CaseParts& parts, const std::vector<StepInput>& inputs, Arm& eager_a);

/// Compares one step without dropout with the single-rank model on the same global batch
/// (reference.h). REQUIRES: more than one rank.
void run_layout_reference(const CaseParts& parts);

/// Arms that live until the teardown, because the order in which graphs are destroyed is part of
/// the test. A failed case leaks them, because a destructor must not call a device after a sticky
/// error.
using KeptArms = std::vector<std::unique_ptr<Arm>>;

/// Runs lockstep_eager and lockstep_graph and compares them after each step (comparisons lockstep
/// and capture_inputs_last). Before the last step all free memory is overwritten, so that a graph
/// that still reads freed memory has other results. If the schedule has evaluations, both arms
/// evaluate between two steps (evaluation.h), and if it has rollouts, they generate after every
/// replayed step (rollout.h); if it resumes, the arms of resume.h follow.
/// lockstep_eager is also compared with the results of `eager_a` that there are (comparison
/// eager_again), so that the spread of eager runs is known from three of them. Returns the results
/// of lockstep_graph, which solo_graph must repeat (solo.h).
History run_lockstep(const CaseParts& parts, const std::vector<StepInput>& inputs,
                     const History& eager_a, KeptArms& kept);

/// Destroys all arms but the last one, graphs first. One live graph is enough for the teardown, and
/// solo arms need the memory.
void keep_last(const CaseParts& parts, KeptArms& kept);

/// Runs free_graph without waiting between its steps and compares it at the end with eager_a
/// (comparison free_run). Work is delayed before its replays, and branches are delayed in its
/// graphs (Device::delay_work, Device::delay_graph_branches). REQUIRES: `kept` begins with an eager
/// arm.
void run_free(const CaseParts& parts, const std::vector<StepInput>& inputs, const Snapshot& eager_a,
              KeptArms& kept);

}  // namespace graphproof::suites
