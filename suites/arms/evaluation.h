// The schedule train-eval-train: between two replayed training steps both lockstep arms evaluate
// batches that training does not use. Side effects of the evaluation appear in the later training
// steps.
#pragma once

#include "suites/arms/arm.h"

namespace graphproof::suites {

/// Writes a comparison of both arms for each of StepConfig::evaluations() batches (comparison
/// evaluation), a comparison of the graph arm's first batch with its second evaluation (comparison
/// evaluation_repeats). Enters phase replay. All ranks call it.
void run_evaluation(const CaseParts& parts, Arm& eager, Arm& graph);
/// After the last new step of training: compares both arms once more (comparison evaluation_later),
/// because a captured evaluation may use what the parameters were at its capture. Then writes the
/// line `evaluated`.
void run_later_evaluation(const CaseParts& parts, Arm& eager, Arm& graph);

}  // namespace graphproof::suites
