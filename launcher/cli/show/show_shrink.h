// The result of a shrink as graphproof-shrink/1 and as text.
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

/// A job that was run, to locate the failure or to make the case smaller.
struct ShrinkJob {
  std::string purpose;  // repeat, locate, alone, without, smaller
  JobResult result;
};

/// Failures of the run that have one signature.
struct FailureGroup {
  reports::Signature signature;
  std::vector<std::string> cases;  // ids
};

/// Everything that a shrink found.
struct ShrinkResult {
  std::string run, run_name, case_id, name;  // the failing case
  std::string folder;                        // of the jobs, relative to the run
  std::string ending = "finished";           // finished, budget, interrupted
  std::string device;
  std::vector<FailureGroup> failures;      // the one that is searched comes first
  int passed = 0, failed = 0, silent = 0;  // other cases of the run; `silent` ones say nothing
  bool matrix_known = false;               // the constraints of the run's matrix file are known
  shrink::Answer answer;
  std::vector<shrink::Evidence> evidence;  // from the run, then from the jobs
  std::vector<ShrinkJob> jobs;
  matrix::Case smallest;
  std::string smallest_name;
  bool reduced = false;  // smaller cases were searched
  std::string today;     // UTC, YYYY-MM-DD
};

/// The entry for the `known_issues` of a matrix file, valid for 30 days; null if nothing was
/// located.
nlohmann::ordered_json known_issue(const ShrinkResult& result, const shrink::Space& space);
/// The command that shows the failure again.
std::string reproducer(const ShrinkResult& result);

record::Json to_json(const ShrinkResult& result, const shrink::Space& space);
void show_shrink(const ShrinkResult& result, const shrink::Space& space, std::ostream& out);

}  // namespace graphproof::cli
