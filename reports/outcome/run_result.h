// The result of a run from which every report is made: each planned case with one record, whether
// it ran or not.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "reports/record/job/plan.h"
#include "reports/record/run/checks.h"
#include "reports/record/run/record.h"
#include "reports/record/run/run.h"

namespace graphproof::reports {

/// Why the run ended.
enum class Ending { finished, interrupted, budget, circuit_breaker, max_fail, disk };
/// The spelling in summary.json.
std::string_view name(Ending ending);
/// The ending that is spelled `text`; interrupted for any other text.
Ending ending_from(std::string_view text);

/// The results of the checks of an attempt by their names.
using CheckResults = std::map<std::string, record::Result>;

/// One planned case and what became of it.
struct CaseResult {
  record::PlanLine plan;
  record::Record record;
  CheckResults checks;  // of the attempt that `record` belongs to
};

/// A whole run.
struct RunResult {
  record::Run run;
  /// How a command line names this run: its id, or a path if it is not in runs/.
  std::string run_name;
  Ending ending = Ending::finished;
  double wall_seconds = 0;
  std::vector<CaseResult> cases;  // in plan order
  /// What of the run folder could not be read or is not of this run: a sentence each. Reports show
  /// them with the verdict.
  std::vector<std::string> notes = {};

  /// The command that runs one case again, alone: "./graphproof repro RUN/CASE".
  std::string repro(const std::string& case_id) const;
};

/// Joins the plan and the records. A case without a record becomes skipped or not_run, as the plan
/// and `ending` require. `results_of` reads the results of the checks of the attempt that a record
/// belongs to; nothing if there are none; several threads call it. If it throws ReadError, the case
/// has none, and `notes` says why. Records of cases that the plan does not have are counted there.
RunResult run_result(record::Run run, std::vector<record::PlanLine> plan,
                     std::map<std::string, record::Record> last_records, Ending ending,
                     double wall_seconds,
                     const std::function<CheckResults(const record::Record&)>& results_of);

/// Reads a run folder: run.json, plan.jsonl, journal.jsonl and the checks.json of each attempt.
/// Throws ReadError if one of the first three cannot be used.
RunResult read_run_result(const std::filesystem::path& run_folder, Ending ending,
                          double wall_seconds);

}  // namespace graphproof::reports
