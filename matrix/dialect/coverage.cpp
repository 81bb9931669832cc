#include "matrix/dialect/coverage.h"

#include <algorithm>

namespace graphproof::dialect {

std::string_view coverage_text(Coverage coverage) {
  switch (coverage) {
    case Coverage::decided:
      return "decided here";
    case Coverage::checked:
      return "covered by";
    case Coverage::loud:
      return "loud, ends the rank";
    case Coverage::fact:
      return "a fact, nothing to decide";
    case Coverage::not_covered:
      return "not covered";
  }
  return "";
}

Coverage coverage_of(const Rule& rule) {
  if (rule.decided()) return Coverage::decided;
  if (rule.status == "dead" || rule.severity == "fact") return Coverage::fact;
  if (rule.covered_by.empty()) return Coverage::not_covered;
  return std::ranges::all_of(rule.covered_by,
                             [](const std::string& id) { return id == "D21.evidence_complete"; })
             ? Coverage::loud
             : Coverage::checked;
}

nlohmann::json list_upstream_rules(const Dialect& dialect) {
  nlohmann::json rows = nlohmann::json::array();
  for (const Rule& rule : dialect.rules.rules()) {
    nlohmann::json stages = nlohmann::json::array();
    for (const Placement& placement : rule.placements)
      stages.push_back(stage_name(placement.stage));
    rows.push_back({{"rule", rule.id},
                    {"dialect", rule.dialect},
                    {"section", rule.section},
                    {"stages", stages},
                    {"status", rule.status},
                    {"severity", rule.severity},
                    {"from", rule.versions.from},
                    {"before", rule.versions.before},
                    {"what", rule.what},
                    {"why", rule.why},
                    {"next", rule.next},
                    {"source", rule.source},
                    {"coverage", coverage_text(coverage_of(rule))},
                    {"decided_by", rule.decided_by},
                    {"covered_by", rule.covered_by},
                    {"active", rule.active(dialect.version)}});
  }
  return rows;
}

}  // namespace graphproof::dialect
