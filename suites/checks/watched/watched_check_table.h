// The list of the checks of watched runs, and how they are run.
#pragma once

#include <span>
#include <string_view>

#include "matrix/catalogue/checks.h"
#include "reports/record/watched/watched_checks.h"
#include "suites/checks/watched/job/watched_judgement.h"

namespace graphproof::checks::watched {

/// A check and its code. The function collects what it finds in `judgement` and returns its result.
struct WatchedCheck {
  std::string_view name;
  record::CheckResult (*function)(WatchedJudgement& judgement, const WatchedJob& job);
};

/// The checks in the order of matrix/tables/checks.json, from which CMake generates this list
/// (cmake/checks.cmake): the function of D61.foreign_threads is d61::foreign_threads.
std::span<const WatchedCheck> all_watched_checks();

/// The content of a watched run's checks.json. The message of a pass is the statement in the table.
record::WatchedChecks judge_watched(const WatchedJob& job, const matrix::CheckTable& table);

}  // namespace graphproof::checks::watched
