// How many cases of a run have which verdict, and what resuming it would do, in the time that it
// takes to read plan and journal: runs have up to 100,000 cases, and whoever asks how far they are
// waits for the answer. Everything else about a run is in reports/outcome/run_result.h.
#pragma once

#include <filesystem>
#include <map>
#include <string>

namespace graphproof::launcher {

struct Tally {
  int planned = 0;
  int not_run = 0;                    // without a record, and not skipped by the plan
  std::map<std::string, int> counts;  // verdict -> cases; those that were not run are left out
};

/// Of plan.jsonl and journal.jsonl in `folder`. The journal may be written meanwhile. Throws
/// record::ReadError.
Tally tally(const std::filesystem::path& folder);

/// What pending_work() would find, in numbers. Cases that are done and cases that were never
/// touched are only counted.
struct Resumable {
  int kept = 0, run = 0, cut_off = 0, alone = 0, judge = 0;  // run: of these `cut_off` and `alone`
  bool operator==(const Resumable&) const = default;
};
/// REQUIRES: no launcher is at work there. Throws record::ReadError.
Resumable resumable(const std::filesystem::path& folder);

}  // namespace graphproof::launcher
