#include "matrix/dialect/finding.h"

namespace graphproof::dialect {

nlohmann::json Finding::json() const {
  nlohmann::json position = nullptr;
  if (place.line > 0)
    position = {{"source", place.source}, {"line", place.line}, {"column", place.column}};
  return {{"rule", rule},         {"stage", stage_name(stage)},
          {"status", status},     {"severity", severity},
          {"option", option},     {"what", what},
          {"got", got},           {"want", want},
          {"why", why},           {"next", next},
          {"position", position}, {"unknown", unknown},
          {"first", first}};
}

Finding finding_of(const Rule& rule, Stage stage, std::string got, std::string want) {
  return {.rule = rule.id,
          .stage = stage,
          .status = rule.status,
          .severity = rule.severity,
          .option = rule.option,
          .what = rule.what,
          .got = std::move(got),
          .want = std::move(want),
          .why = rule.why,
          .next = rule.next,
          .place = {}};
}

}  // namespace graphproof::dialect
