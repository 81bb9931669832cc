#include "matrix/dialect/coverage.h"

namespace graphproof::dialect {

namespace {

constexpr const char* kEndOfRank = "D21.evidence_complete";

bool exists(const std::string& id, const std::set<std::string>& known) {
  return id.starts_with("test ") || known.count(id) != 0;
}

}  // namespace

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
    case Coverage::planned:
      return "planned";
    case Coverage::not_covered:
      return "not covered";
  }
  return "";
}

Coverage coverage_of(const Rule& rule, const std::set<std::string>& known) {
  if (rule.decided()) return Coverage::decided;
  if (rule.status == "dead" || rule.severity == "fact") return Coverage::fact;
  bool loud = false;
  for (const std::string& id : rule.covered_by) {
    if (!exists(id, known)) continue;
    if (id != kEndOfRank) return Coverage::checked;
    loud = true;
  }
  if (loud) return Coverage::loud;
  return rule.covered_by.empty() ? Coverage::not_covered : Coverage::planned;
}

nlohmann::json list_upstream_rules(const Dialect& dialect, const std::set<std::string>& known) {
  nlohmann::json rows = nlohmann::json::array();
  for (const Rule& rule : dialect.rules.rules()) {
    nlohmann::json stages = nlohmann::json::array();
    for (const Placement& placement : rule.placements)
      stages.push_back(stage_name(placement.stage));
    nlohmann::json covered = nlohmann::json::array(), planned = nlohmann::json::array();
    for (const std::string& id : rule.covered_by)
      (exists(id, known) ? covered : planned).push_back(id);
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
                    {"coverage", coverage_text(coverage_of(rule, known))},
                    {"decided_by", rule.decided_by},
                    {"covered_by", covered},
                    {"planned", planned},
                    {"active", rule.active(dialect.version)}});
  }
  return rows;
}

}  // namespace graphproof::dialect
