// Which case a reader wants to see first.
#pragma once

#include <vector>

#include "reports/outcome/run_result.h"

namespace graphproof::reports {

/// True if the case does not end the run with exit code 0: shown with all its parts.
bool needs_attention(const CaseResult& one);

/// Cases that need attention, the strongest exit code first, then the worst verdict, then plan
/// order.
std::vector<const CaseResult*> failures_first(const RunResult& run);

/// The others, in plan order.
std::vector<const CaseResult*> acceptable(const RunResult& run);

}  // namespace graphproof::reports
