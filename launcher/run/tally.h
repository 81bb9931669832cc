// How many cases of a run have which verdict, and what resuming it would do, in the time that it
// takes to read plan and journal: runs have up to 100,000 cases, and `graphproof status` must
// answer at once. Everything else about a run is in reports/outcome/run_result.h.
#pragma once

#include <filesystem>
#include <map>
#include <string>

namespace graphproof::launcher {

/// Counts of cases.
struct Tally {
  int planned = 0;
  int not_run = 0;                    // without a record, and not skipped by the plan
  std::map<std::string, int> counts;  // verdict -> cases, without those that were not run
};

/// Counts plan.jsonl and journal.jsonl in `folder`. The journal may be written meanwhile. Throws
/// record::ReadError.
Tally tally(const std::filesystem::path& folder);

/// What pending_work() would find, in numbers. It is only asked about cases that are neither done
/// nor untouched.
struct Resumable {
  int kept = 0, run = 0, cut_off = 0, alone = 0, judge = 0;  // run: includes `cut_off` and `alone`
  bool operator==(const Resumable&) const = default;
};
/// What resuming the run in `folder` would do. REQUIRES: no launcher is at work there. Throws
/// record::ReadError.
Resumable resumable(const std::filesystem::path& folder);

}  // namespace graphproof::launcher
