// summary.md: a page for a pull request or the summary of a CI job. Failures come first, each with
// the five parts of its message and the command that runs the case again.
#pragma once

#include <string>

#include "reports/outcome/run_result.h"
#include "reports/print/markdown_parts.h"

namespace graphproof::reports {

/// The whole page.
std::string markdown(const RunResult& run);

}  // namespace graphproof::reports
