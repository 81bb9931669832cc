// The first tensor in which a graph arm leaves eager's way: two fresh arms run the case's steps
// side by side with every operator's result kept (suites/arms/taps.h), and each rank writes one
// `divergence` line.
//
// It is a run of its own, in processes of its own, after the verdict: what hangs or fails here ends
// these processes and nothing else. Its evidence lies apart from the attempt's, and no check reads
// it.
#pragma once

#include <vector>

#include "suites/arms/arm.h"

namespace graphproof::suites {

/// Every rank calls it. The ranks agree after each step whether any of them has seen a difference,
/// and stop together at the first step in which one has; a rank that has seen none says so in its
/// line.
void locate_divergence(const CaseParts& parts, const std::vector<StepInput>& inputs);

}  // namespace graphproof::suites
