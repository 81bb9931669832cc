// The reports of a whole run. They are written from its records, and can be written again from
// them.
#pragma once

#include <filesystem>

#include "matrix/catalogue/catalogue.h"
#include "reports/analysis/cross_run.h"
#include "reports/outcome/run_result.h"
#include "reports/print/overview.h"

namespace graphproof::launcher {

/// What the history next to the run folder says: runs/history.db for a run in runs/. A history that
/// is absent or cannot be used is named in `unknown` with its reason; it keeps no report from being
/// written.
reports::CrossRunFacts earlier_runs(const reports::RunResult& result,
                                    const std::filesystem::path& folder);

/// The first screen of a run in words, from its records, its evidence and the history.
reports::Overview overview_of(const reports::RunResult& result, const std::filesystem::path& folder,
                              const matrix::Catalogue& catalogue);

/// Writes summary.json, summary.md, junit.xml, faults.json and report.html of a run into `folder`.
void write_reports(const reports::RunResult& result, const std::filesystem::path& folder);
/// Writes report.html alone.
void write_page(const reports::RunResult& result, const std::filesystem::path& folder);

/// The result of a run as its folder has it: with the ending and time of the summary if there is
/// one, otherwise from the journal alone.
reports::RunResult read_run(const std::filesystem::path& folder);

/// The same without the results of single checks, which are in a file of each attempt: enough for
/// verdicts, figures and counts of checks, and fast for a run of ten thousand cases. A case without
/// a record is not_run or skipped, whatever ended the run.
reports::RunResult read_verdicts(const std::filesystem::path& folder);

}  // namespace graphproof::launcher
