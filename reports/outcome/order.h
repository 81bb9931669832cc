// The order in which reports show cases: failures first.
#pragma once

#include <vector>

#include "reports/outcome/run_result.h"

namespace graphproof::reports {

/// Whether the case by itself makes the exit code of the run other than 0. Reports show such a case
/// in full.
bool needs_attention(const CaseResult& one);

/// The cases that need attention: product failures first, then by the precedence of exit codes,
/// then by the severity of verdicts, then in plan order.
std::vector<const CaseResult*> failures_first(const RunResult& run);

/// The other cases, in plan order.
std::vector<const CaseResult*> acceptable(const RunResult& run);

}  // namespace graphproof::reports
