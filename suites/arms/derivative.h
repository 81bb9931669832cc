// Whether the gradients of a step are the derivative of its loss. Every other comparison is between
// two runs of the same backward, so a wrong one trains another model than was asked for and passes.
#pragma once

#include "suites/arms/arm.h"

namespace graphproof::suites {

/// Runs the model of the case on a single rank in fp64, without dropout, without what adds to
/// gradients and not to losses, and with fixed experts for each token. One step gives the
/// gradients. Then parameters are changed, added and subtracted, and the forward gives the losses:
/// a `derivative` line for a change of all parameters together, and one for each group of them that
/// this does not speak for, or for each group if it disagrees. Directions and groups are shared out
/// among the ranks, since all would compute the same. A fault is planted only if the case itself
/// has a single rank, because a fault may need the groups of its layout. A loss that routers add to
/// the gradients alone is held against router_losses.h: a `router_loss` line for each. REQUIRES:
/// the case trains.
void run_derivative(const CaseParts& parts);

}  // namespace graphproof::suites
