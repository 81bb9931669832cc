// Counts, coverage and exit code of a run: summary.json.
#pragma once

#include <functional>
#include <string_view>

#include "reports/outcome/run_result.h"
#include "reports/record/run/summary.h"
#include "reports/record/verdict/exit_code.h"

namespace graphproof::reports {

/// Whether the checks of a case that was judged are gone: its record counts results, but its
/// attempt has no checks.json any more. Nothing shows then that its verdict is right.
bool lost_evidence(const CaseResult& one);

/// How much of the plan the run covered.
record::Coverage coverage(const RunResult& run);

/// The content of summary.json without its cases.
record::Summary summary(const RunResult& run);
/// The text of summary.json, piece by piece.
void put_summary(const RunResult& run, const std::function<void(std::string_view)>& put);

/// The strongest of the exit codes of all cases and of the run itself: coverage (4) if no case was
/// selected or none ran, or if the evidence of a case is lost; interrupted (5) if the run was
/// interrupted or its budget was spent.
record::ExitCode exit_code(const RunResult& run);

}  // namespace graphproof::reports
