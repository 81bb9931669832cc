// What a run folder says as a whole: its reports are written from its records, and can be written
// again from them.
#pragma once

#include <filesystem>

#include "reports/outcome/run_result.h"

namespace graphproof::launcher {

/// Writes summary.json, summary.md, junit.xml and faults.json of a run into `folder`.
void write_reports(const reports::RunResult& result, const std::filesystem::path& folder);

/// A run as its folder shows it: by the summary's ending and time if there is one, otherwise by the
/// journal alone.
reports::RunResult read_run(const std::filesystem::path& folder);

}  // namespace graphproof::launcher
