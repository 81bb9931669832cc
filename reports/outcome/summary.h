// Counts, coverage and exit code of a run: summary.json.
#pragma once

#include "reports/outcome/run_result.h"
#include "reports/record/run/summary.h"
#include "reports/record/verdict/exit_code.h"

namespace graphproof::reports {

record::Summary summary(const RunResult& run);

/// The strongest of all cases' exit codes; coverage (4) if nothing was selected or nothing ran;
/// interrupted (5) if the run was.
record::ExitCode exit_code(const RunResult& run);

}  // namespace graphproof::reports
