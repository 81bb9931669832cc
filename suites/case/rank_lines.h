// Evidence lines about what several ranks must have in common after a step, or must not: parts of
// the model, the optimizer's state, dropout masks. Each rank writes digests of its own; the checks
// know which ranks they are compared with.
#pragma once

#include <cstdint>
#include <string>

#include "suites/case/case_scope.h"
#include "workloads/training/train_step.h"

namespace graphproof::suites {

/// Writes the lines of step `index` of `arm`:
///   `held`   the parameters, and the optimizer's state, of each part of the model that this rank
///            has; none for a part without tensors
///   `masks`  with dropout: those inside and those outside tensor parallel regions
/// The state of fp8 is left out, because `fp8_scaling` lines have it. Waits for the device.
void write_rank_lines(CaseScope& scope, const std::string& arm, std::int64_t index,
                      workloads::TrainStep& step);

}  // namespace graphproof::suites
