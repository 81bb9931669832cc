// plan.jsonl: one line per case, made before anything runs: what it is, what it needs, what is
// expected of it.
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

/// What the plan expects. Which members hold depends on `kind`; the others are empty.
///   pass         nothing else
///   rejected     rule: the rank program refuses by it in phase validate
///   fault        fault, detector, clean_twin (a case id)
///   known_issue  issue, verdict (or a dotted prefix of one), owner, until (YYYY-MM-DD, the last
///   day it excuses) hazard       rule, verdict (or a dotted prefix): a forbidden combination, run
///   to see what the stack does
struct Expect {
  std::string kind = "pass";
  std::string rule;
  std::string fault, detector, clean_twin;
  std::string issue, verdict, owner, until;

  bool operator==(const Expect&) const = default;
};
Json to_json(const Expect& expect);
Expect expect_from(const Fields& in);

/// A case that the plan does not run.
struct Skip {
  Verdict
      verdict;  // skipped.*, or unexercised where the case's fault cannot be shown on this device
  std::string why;

  bool operator==(const Skip&) const = default;
};

struct PlanLine {
  std::string id, name;
  nlohmann::json axes;  // every effective value
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
/// With its newline.
std::string to_line(const PlanLine& line);
PlanLine plan_line_from(const nlohmann::json& value, const std::string& where);
/// The lines of a plan.jsonl, which is written whole before the run: a torn line is an error.
std::vector<PlanLine> plan_from(std::string_view text, const std::string& where);

}  // namespace graphproof::record
