// summary.md: a page for a pull request or a job's summary. Failures first, each with its five
// parts and the command that reproduces it.
#pragma once

#include <string>

#include "reports/run_result.h"

namespace graphproof::reports {

std::string markdown(const RunResult& run);

}  // namespace graphproof::reports
