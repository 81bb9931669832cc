// What a shrink found: as graphproof-shrink/1, and as text for people.
#pragma once

#include <nlohmann/json.hpp>

#include <ostream>
#include <string>
#include <vector>

#include "launcher/cli/shrink_jobs.h"
#include "matrix/plan/matrix_file.h"
#include "matrix/shrink/locate.h"
#include "matrix/shrink/space.h"
#include "reports/record/text/fields.h"

namespace graphproof::cli {

/// A job as it was run: to locate, or to make the job smaller.
struct ShrinkJob {
  std::string purpose;  // repeat, locate, alone, without, smaller
  JobResult result;
};

/// Failures of the run that have one signature.
struct FailureGroup {
  reports::Signature signature;
  std::vector<std::string> cases;  // ids
};

struct ShrinkResult {
  std::string run, run_name, case_id, name;  // the failing case
  std::string folder;                        // of the jobs, relative to the run
  std::string ending = "finished";           // finished, budget, interrupted
  std::string device;
  std::vector<FailureGroup> failures;      // the one that was looked into first
  int passed = 0, failed = 0, silent = 0;  // other cases of the run: what they say of this failure
  bool matrix_known = false;               // its own constraints were kept
  shrink::Answer answer;
  std::vector<shrink::Evidence> evidence;  // of the run, then of the jobs
  std::vector<ShrinkJob> jobs;
  matrix::Case smallest;
  std::string smallest_name;
  bool reduced = false;  // smaller jobs were looked for
  std::string today;     // UTC, YYYY-MM-DD
};

/// The entry for the `known_issues` of a matrix file; null where nothing was located. It excuses
/// for 30 days.
nlohmann::ordered_json known_issue(const ShrinkResult& result, const shrink::Space& space);
/// What shows the failure again in one line.
std::string reproducer(const ShrinkResult& result);

record::Json to_json(const ShrinkResult& result, const shrink::Space& space);
void show_shrink(const ShrinkResult& result, const shrink::Space& space, std::ostream& out);

}  // namespace graphproof::cli
