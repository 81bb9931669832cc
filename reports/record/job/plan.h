// plan.jsonl: a line for each case, written before anything runs: what the case is, what it needs,
// and what is expected of it.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reports/record/job/batch.h"
#include "reports/record/text/fields.h"
#include "reports/record/verdict/verdict.h"

namespace graphproof::record {

inline constexpr std::string_view kPlanSchema = "graphproof-plan/1";

/// What the plan expects of a case. `kind` determines which members are set; the others are empty.
/// - pass: no members.
/// - rejected: rule. The rank program refuses the case by this rule in phase validate. The code of
///   another subject than reference has to refuse it before the first replay, and its own words
///   contain `says`, if the rule knows them.
/// - fault: fault, detector, clean_twin (a case id). The detector catches the planted fault. Its
///   verdict is fail.eager if the fault breaks eager steps too, and otherwise empty.
/// - known_issue: issue, verdict, owner, until (YYYY-MM-DD, the last day that it excuses).
/// - hazard: rule, verdict. A dangerous combination, run to show what the software stack does.
/// `verdict` may be a dotted prefix of a verdict.
struct Expect {
  std::string kind = "pass";
  std::string rule, says;
  std::string fault, detector, clean_twin;
  std::string issue, verdict, owner, until;

  bool operator==(const Expect&) const = default;
};
Json to_json(const Expect& expect);
Expect expect_from(const Fields& in);

/// Why the plan does not run a case.
struct Skip {
  Verdict verdict;  // skipped.*, or unexercised if the device can't show the case's fault
  std::string why;

  bool operator==(const Skip&) const = default;
};

/// A case of a plan. matrix/plan makes it.
struct PlanLine {
  std::string id, name;
  nlohmann::json axes;  // the value of every axis
  int ranks = 1;
  std::string isolation;  // batch, process
  std::map<std::string, std::string> environment;
  Limits limits_ms;  // a phase that is absent has the limit of the run
  Expect expect;
  std::vector<std::string> required_checks;
  std::optional<Skip> skip;
  std::string why;
  double expected_seconds = 0;

  bool operator==(const PlanLine&) const = default;
};

Json to_json(const PlanLine& line);
/// The line with its newline.
std::string to_line(const PlanLine& line);
PlanLine plan_line_from(const nlohmann::json& value, const std::string& where);
/// Reads a plan.jsonl. It is written completely before the run, so a torn line is an error.
std::vector<PlanLine> plan_from(std::string_view text, const std::string& where);

}  // namespace graphproof::record
