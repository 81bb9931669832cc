// For tests: one table of changes to the clean watched job for each check. Every row says what the
// check has to answer and which other checks may change their result; any further one is an error.
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "suites/checks/watched/testing/clean_job.h"
#include "suites/checks/watched/watched_check_table.h"

namespace graphproof::checks::watched {

struct WatchedRow {
  std::string name;
  std::function<void(WatchedJob&)> change;
  record::Result want = record::Result::fail;
  std::optional<int> rank;            // that the result names
  std::vector<std::string> mentions;  // parts of the message, in any of its fields
  std::set<std::string> also = {};    // checks that may change too; "*": any
};

/// Judges every row against the clean job, whose result for `check` has to be a pass. At least one
/// row has to make `check` fail and change no other check but those that it names in `also`.
void judge_watched_rows(const std::string& check, const std::vector<WatchedRow>& rows);

/// The result of one check of a job.
record::CheckResult result_of(const std::string& check, const WatchedJob& job);

}  // namespace graphproof::checks::watched
