// Phase validate: whether a case may run. It is decided by the rule set `graphproof` from the case
// alone, before CUDA, NCCL or MPI are initialised, so that a forbidden combination never uses a
// device.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "matrix/case/machine.h"
#include "matrix/catalogue/catalogue.h"
#include "reports/record/job/batch.h"

namespace graphproof::suites {

/// A case of the batch and whether it may run.
struct ValidatedCase {
  record::BatchCase listed;
  matrix::Case test_case;
  std::optional<matrix::Finding> refusal;  // the first rule, in source order, that forbids it
  double validate_ms = 0;
};

/// Validates all cases. Throws record::ReadError for a contradictory batch file (a case id that
/// does not belong to the axes, a device or world size that differs from this process's), and
/// matrix::InputError for unknown axes.
std::vector<ValidatedCase> validate(const record::Batch& batch, const matrix::Catalogue& catalogue,
                                    const matrix::Machine& machine, int world_size);

}  // namespace graphproof::suites
