// Steps in which the gradients of one part of the model alone are infinite. In a step of training
// with a loss scale all ranks overflow together, so a reduction of the decision to skip that leaves
// out a group of ranks would never show.
#pragma once

#include "suites/arms/arm.h"

namespace graphproof::suites {

/// For every part of the model in turn, and once for none: sets one gradient of the ranks that hold
/// that part to infinity, all others to zero, runs the optimizer, and writes an `infinity` line on
/// every rank. The parts are those of the dense model, of a stage and a tensor parallel rank, and
/// those of the experts; with a distributed optimizer, what each rank owns of them. Runs no forward
/// and no backward. REQUIRES: precision fp16.
void run_infinities(const CaseParts& parts);

}  // namespace graphproof::suites
