// Phase validate: may this case run at all? Decided from the case and the rule set `graphproof`
// alone, before CUDA, NCCL or MPI is initialised, so that a forbidden combination never touches a
// device.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "matrix/case/machine.h"
#include "matrix/catalogue/catalogue.h"
#include "reports/record/job/batch.h"

namespace graphproof::suites {

struct ValidatedCase {
  record::BatchCase listed;
  matrix::Case test_case;
  std::optional<matrix::Finding> refusal;  // the first rule, in source order, that forbids it
  double validate_ms = 0;
};

/// Throws record::ReadError for a batch file that contradicts itself (an id that is not the axes',
/// another device than this program's, another world size than the starter's), matrix::InputError
/// for axes that no table knows.
std::vector<ValidatedCase> validate(const record::Batch& batch, const matrix::Catalogue& catalogue,
                                    const matrix::Machine& machine, int world_size);

}  // namespace graphproof::suites
