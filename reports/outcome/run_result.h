// A run as every report sees it: each planned case with its one record, whether it ran or not.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reports/record/job/plan.h"
#include "reports/record/run/checks.h"
#include "reports/record/run/record.h"
#include "reports/record/run/run.h"

namespace graphproof::reports {

enum class Ending { finished, interrupted, budget, circuit_breaker, max_fail, disk };
/// As summary.json spells it.
std::string_view name(Ending ending);
/// The ending spelled `text`; interrupted if there is none.
Ending ending_from(std::string_view text);

struct CaseResult {
  record::PlanLine plan;
  record::Record record;
  std::map<std::string, record::Result> checks;  // of the attempt that the record is of
};

struct RunResult {
  record::Run run;
  std::string
      run_name;  // how a command line names this run: its id, or a path if it is not under runs/
  Ending ending = Ending::finished;
  double wall_seconds = 0;
  std::vector<CaseResult> cases;  // in plan order

  /// What a user types to see this case alone: "./graphproof repro RUN/CASE".
  std::string repro(const std::string& case_id) const;
};

/// Joins plan and records. A case without a record is skipped or not_run as the plan and `ending`
/// say. `checks_of` reads the checks.json of a record's attempt; nothing if there is none.
RunResult run_result(
    record::Run run, const std::vector<record::PlanLine>& plan,
    const std::map<std::string, record::Record>& last_records, Ending ending, double wall_seconds,
    const std::function<std::optional<record::Checks>(const record::Record&)>& checks_of);

/// The same from a run folder: run.json, plan.jsonl, journal.jsonl and the attempts' checks.json.
RunResult read_run_result(const std::filesystem::path& run_folder, Ending ending,
                          double wall_seconds);

}  // namespace graphproof::reports
