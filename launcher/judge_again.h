// Judges the attempt folders of a run once more, with today's checks and outcome rules: evidence is kept, so an old run
// can be asked a new question, and a check can be shown to be needed by leaving it out.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "reports/outcome.h"
#include "reports/run_result.h"

namespace graphproof::launcher {

/// For every planned case with an attempt folder: runs the judge (which replaces checks.json), then the outcome rules,
/// folding a second attempt into the first as the run did. Cases without one are not_run, or skipped as planned. The
/// journal is not touched. `dropped`: checks that the judge leaves out. REQUIRES: `folder` is writable and holds
/// run.json and plan.jsonl.
reports::RunResult judge_again(const std::filesystem::path& folder, const std::filesystem::path& judge_program,
                               const reports::CheckEffects& effects, const std::vector<std::string>& dropped = {});

/// The same with the checks.json as they are, which the caller may have changed.
reports::RunResult decide_again(const std::filesystem::path& folder, const reports::CheckEffects& effects);

}  // namespace graphproof::launcher
