// summary.json: the result of a run for other programs. The format is stable: keys may be added,
// but do not change.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "reports/record/run/checks.h"
#include "reports/record/run/run.h"
#include "reports/record/text/fields.h"
#include "reports/record/verdict/verdict.h"

namespace graphproof::record {

inline constexpr std::string_view kSummarySchema = "graphproof-summary/1";

/// The result of one case.
struct SummaryCase {
  std::string id, name;
  nlohmann::json axes;  // the value of every axis
  Verdict verdict;
  std::string isolation;
  int ranks = 1;
  double seconds = 0;
  std::map<std::string, Result> checks;

  bool operator==(const SummaryCase&) const = default;
};

/// How much of the plan was covered: planned = ran + rejected + skipped + not_run. A case that ran
/// has evidence that was judged, whatever its verdict; a rejected case was refused by the expected
/// rule. required_checks and unexercised count pairs of a case that ran and a check.
struct Coverage {
  int planned = 0, ran = 0, rejected = 0, skipped = 0, not_run = 0;
  int required_checks = 0, unexercised = 0;

  bool operator==(const Coverage&) const = default;
};

/// The result of a run.
struct Summary {
  std::string run_id, profile, device;
  bool finished = false;
  Stack stack;
  double wall_seconds = 0;
  std::map<std::string, int> counts;  // verdict -> cases
  int exit_code = 0;
  Coverage coverage;
  std::vector<SummaryCase> cases;  // in plan order
  /// finished, interrupted, budget, circuit_breaker, max_fail, disk.
  std::string ending = "finished";

  bool operator==(const Summary&) const = default;
};

Json to_json(const Summary& summary);
/// The text of summary.json, piece by piece: `summary` with the cases that `case_of` gives for 0 to
/// `cases` - 1 in place of its own, so that those of a large run are never in memory at once.
void put_summary(const Summary& summary, std::size_t cases,
                 const std::function<SummaryCase(std::size_t)>& case_of,
                 const std::function<void(std::string_view)>& put);
/// Reads a summary.json without its cases. Throws ReadError.
Summary read_summary_head(const std::filesystem::path& file);
Summary summary_from(const nlohmann::json& value, const std::string& where);

}  // namespace graphproof::record
