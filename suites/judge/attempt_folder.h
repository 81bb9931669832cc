// Reads an attempt folder (RUN/cases/ID/attempt-N) for the checks: context.json, the evidence of
// each rank as far as it exists, each rank's part of the batch's log, and the log of
// compute-sanitizer.
#pragma once

#include <filesystem>

#include "matrix/case/axes.h"
#include "matrix/catalogue/checks.h"
#include "suites/checks/attempt/attempt.h"

namespace graphproof::judge {

/// Evidence and logs may be missing or torn; the checks judge that. Throws record::Error or
/// matrix::InputError if there is no usable context.json, because it states what the attempt should
/// show.
checks::Attempt load_attempt(const std::filesystem::path& folder, const matrix::AxisTable& axes,
                             const matrix::CheckTable& table);

}  // namespace graphproof::judge
