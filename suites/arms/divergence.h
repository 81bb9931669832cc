// Finds the first tensor in which a graph arm differs from eager: two new arms run the steps of the
// case in lockstep, the results of all operators are recorded (taps.h), and each rank writes one
// line `divergence`.
//
// This runs after the verdict, in separate processes, so a hang or failure here affects nothing
// else. Its evidence is separate from the attempt's, and no check reads it.
#pragma once

#include <vector>

#include "suites/arms/arm.h"

namespace graphproof::suites {

/// All ranks call it. After each step the ranks exchange whether they have found a difference. They
/// stop together after the first step in which one has; the lines of the other ranks state that
/// they found none.
void locate_divergence(const CaseParts& parts, const std::vector<StepInput>& inputs);

}  // namespace graphproof::suites
