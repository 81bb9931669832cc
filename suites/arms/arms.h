// The arms of a case, in the order in which they run. Each function leaves evidence and decides
// nothing: whether two arms are equal enough is the judge's question.
#pragma once

#include <memory>
#include <vector>

#include "suites/arms/arm.h"
#include "suites/arms/history.h"

namespace graphproof::suites {

/// The inputs of steps 0 .. steps-1, made before any arm runs and alive until the last one has
/// ended, so that a static input that is rebound can never come back to an address of before by
/// chance; then those of the capture again.
std::vector<StepInput> make_inputs(const CaseParts& parts);

/// The steps of eager_a, which solo_eager has to repeat (solo.h): what "equal" can mean. Two of
/// them are late (Device::delay_work), so that an order that is only luck shows.
History run_eager(const CaseParts& parts, const std::vector<StepInput>& inputs, Arm& eager_a);

/// One step without dropout, against the single-rank model over the same global batch. REQUIRES:
/// more than one rank.
void run_layout_reference(const CaseParts& parts);

/// Arms that stay alive until teardown, because the order in which graphs go is part of the test;
/// and which a failed case leaks, because a destructor must not call into a device whose error
/// sticks.
using KeptArms = std::vector<std::unique_ptr<Arm>>;

/// lockstep_eager and lockstep_graph, step by step (subjects lockstep, capture_inputs_last). Before
/// the last step all memory that nobody has is overwritten, so that whoever still reads there
/// shows. Where the case evaluates, both do between two steps (evaluation.h); where it resumes,
/// resume.h's arms follow. Returns what lockstep_graph left in the compared steps, which solo_graph
/// has to repeat (solo.h).
History run_lockstep(const CaseParts& parts, const std::vector<StepInput>& inputs, KeptArms& kept);

/// Drops all arms but the last one, graphs first. One live graph is enough for teardown, and solo
/// arms want the room.
void keep_last(const CaseParts& parts, KeptArms& kept);

/// free_graph without a wait between its steps, compared at the end with what eager_a left (subject
/// free_run). Its replays are late, and its graphs are within (Device::delay_work,
/// Device::delay_graph_branches). REQUIRES: `kept` begins with an eager arm.
void run_free(const CaseParts& parts, const std::vector<StepInput>& inputs, const Snapshot& eager_a,
              KeptArms& kept);

}  // namespace graphproof::suites
