#include "matrix/dialect/sarif.h"

#include <algorithm>
#include <set>

namespace graphproof::dialect {
namespace {

const char* level(const Finding& finding) {
  if (finding.unknown || finding.severity == "fix") return "note";
  return finding.severity == "error" ? "error" : "warning";
}

}  // namespace

nlohmann::json sarif(const Verdict& verdict, const std::string& uri) {
  nlohmann::json rules = nlohmann::json::array(), results = nlohmann::json::array();
  std::set<std::string> listed;
  for (const Finding& finding : verdict.findings) {
    if (listed.insert(finding.rule).second)
      rules.push_back({{"id", finding.rule},
                       {"shortDescription", {{"text", finding.what}}},
                       {"fullDescription", {{"text", finding.why}}},
                       {"help", {{"text", finding.next}}}});
    const std::string text = finding.what + (finding.unknown ? " (undecided)" : "") + ": got " +
                             finding.got +
                             (finding.want.empty() ? "" : ", wanted " + finding.want) + ". " +
                             finding.why + ". Next: " + finding.next;
    nlohmann::json location = {
        {"logicalLocations",
         nlohmann::json::array(
             {{{"name", finding.option.empty() ? "command line" : finding.option}}})}};
    if (!uri.empty())
      location["physicalLocation"] = {{"artifactLocation", {{"uri", uri}}},
                                      {"region",
                                       {{"startLine", std::max(1, finding.place.line)},
                                        {"startColumn", std::max(1, finding.place.column)}}}};
    results.push_back({{"ruleId", finding.rule},
                       {"level", level(finding)},
                       {"message", {{"text", text}}},
                       {"locations", nlohmann::json::array({location})}});
  }
  return {{"$schema", "https://json.schemastore.org/sarif-2.1.0.json"},
          {"version", "2.1.0"},
          {"runs", nlohmann::json::array(
                       {{{"tool", {{"driver", {{"name", "graphproof check"}, {"rules", rules}}}}},
                         {"results", results}}})}};
}

}  // namespace graphproof::dialect
