// The schedule train-eval-train: between two replayed training steps both lockstep arms evaluate
// batches that training never sees, and train on. What evaluation leaves behind shows in the
// training steps that follow.
#pragma once

#include "suites/arms/arm.h"

namespace graphproof::suites {

/// Enters phase replay. Writes a comparison `evaluation` of both arms for each of
/// StepConfig::evaluations() batches, `evaluation_repeats` of the graph arm's first batch evaluated
/// once more, and the line `evaluated`. Every rank calls it.
void run_evaluation(const CaseParts& parts, Arm& eager, Arm& graph);

}  // namespace graphproof::suites
