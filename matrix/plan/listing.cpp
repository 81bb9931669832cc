#include "matrix/plan/listing.h"

#include "matrix/plan/plan.h"

namespace graphproof::matrix {
namespace {

nlohmann::json texts(const std::vector<Case>& cases) {
  nlohmann::json list = nlohmann::json::array();
  for (const Case& one : cases) list.push_back(nlohmann::json::parse(canonical_text(one)));
  return list;
}

}  // namespace

nlohmann::json list_axes(const Catalogue& catalogue) {
  nlohmann::json list = nlohmann::json::array();
  for (const Axis& axis : catalogue.axes.axes()) {
    nlohmann::json row{{"name", axis.name},
                       {"type", axis_type_name(axis.type)},
                       {"default", value_json(axis.default_value)},
                       {"meaning", axis.meaning},
                       {"unit", axis.unit}};
    if (axis.type == AxisType::integer) {
      row["minimum"] = axis.minimum;
      row["maximum"] = axis.maximum;
    } else if (axis.type == AxisType::boolean) {
      row["values"] = {false, true};
    } else {
      row["values"] = axis.values;
    }
    list.push_back(std::move(row));
  }
  const Axis& open = catalogue.axes.at("env.NAME", {});
  list.push_back({{"name", "env.NAME"},
                  {"type", axis_type_name(open.type)},
                  {"default", value_json(open.default_value)},
                  {"meaning", open.meaning},
                  {"unit", ""}});
  return list;
}

nlohmann::json list_profiles(const Catalogue& catalogue) {
  nlohmann::json list = nlohmann::json::array();
  for (const std::string& name : shipped_profiles()) {
    const Document document =
        parse_document(shipped_profile_text(name), "matrix/profiles/" + name + ".json");
    const MatrixFile file = shipped_matrix_file(name, catalogue);
    // The size of a covering plan is known only once it is made, which takes seconds.
    nlohmann::json cases;
    if (!file.profiles.at(name).cover)
      cases = make_plan(file, catalogue, name, Machine{}, std::nullopt).lines.size();
    list.push_back({{"profile", name},
                    {"meaning", Located(document).at("profiles").at(name).string_or("meaning", "")},
                    {"cases", cases}});
  }
  return list;
}

nlohmann::json list_rules(const Catalogue& catalogue) {
  nlohmann::json list = nlohmann::json::array();
  for (const Rule& rule : catalogue.rules.rules()) {
    nlohmann::json parts = nlohmann::json::array();
    for (const RulePart& part : rule.parts)
      parts.push_back(
          {{"when", part.when.text()}, {"require", part.require.text()}, {"want", part.want}});
    list.push_back({{"rule", rule.id},
                    {"dialect", rule.dialect},
                    {"from", rule.from},
                    {"before", rule.before},
                    {"stage", rule.stage},
                    {"status", rule.status},
                    {"severity", rule.severity},
                    {"what", rule.what},
                    {"when", rule.when.text()},
                    {"parts", std::move(parts)},
                    {"why", rule.why},
                    {"next", rule.next},
                    {"source", rule.source},
                    {"subjects", rule.subjects},
                    {"says", rule.says},
                    {"breaks", texts(rule.breaks)}});
  }
  return list;
}

nlohmann::json list_checks(const Catalogue& catalogue) {
  nlohmann::json list = nlohmann::json::array();
  for (const CheckEntry& check : catalogue.checks.checks())
    list.push_back({{"check", check.check},
                    {"detector", check.detector},
                    {"states", check.states},
                    {"verdict", check.verdict},
                    {"required_when", check.required_when.text()},
                    {"devices", check.devices}});
  return list;
}

nlohmann::json list_faults(const Catalogue& catalogue) {
  nlohmann::json list = nlohmann::json::array();
  for (const FaultEntry& fault : catalogue.faults.faults())
    list.push_back({{"fault", fault.fault},
                    {"name", fault.name},
                    {"title", fault.title},
                    {"detector", fault.detector_text()},
                    {"isolation", fault.isolation},
                    {"devices", fault.devices},
                    {"axes", nlohmann::json::parse(canonical_text(fault.twin))},
                    {"limits_ms", record::to_json(fault.limits_ms)},
                    {"signature", fault.signature}});
  return list;
}

nlohmann::json explain(const Catalogue& catalogue, const Case& test_case, const Machine& machine) {
  nlohmann::json rules = nlohmann::json::array();
  for (const Rule& rule : catalogue.rules.rules()) {
    if (rule.status != "live") continue;
    const auto finding = catalogue.rules.check(rule, test_case, machine);
    nlohmann::json row{{"rule", rule.id}, {"severity", rule.severity}, {"result", "holds"}};
    if (finding) {
      row.update(finding->json());
      row["result"] = finding->unknown ? "unknown" : "breaks";
    } else {
      // A rule whose parts all have conditions that are not met does not apply.
      bool applies = false;
      for (const RulePart& part : rule.parts)
        applies = applies || part.when.holds(test_case, machine) == Truth::yes;
      if (!applies || !rule.binds(subject_of(test_case)) ||
          rule.when.holds(test_case, machine) != Truth::yes)
        row["result"] = "not_applicable";
    }
    rules.push_back(std::move(row));
  }
  const auto refusal = catalogue.rules.refusal(test_case, machine);
  const FaultEntry* fault = catalogue.faults.find(text_of(catalogue.axes, test_case, "fault"));
  const record::PlanLine line = plan_case(catalogue, test_case, machine, "explain");
  const nlohmann::json json = record::to_json(line);
  return {{"id", line.id},
          {"name", line.name},
          {"axes", line.axes},
          {"ranks", line.ranks},
          {"canonical", canonical_text(test_case)},
          {"rules", std::move(rules)},
          {"refusal", refusal ? refusal->json() : nlohmann::json()},
          {"missing", catalogue.capabilities.missing(test_case, machine)},
          {"skip", json.at("skip")},
          {"expect", json.at("expect")},
          {"required_checks", line.required_checks},
          {"fault", fault != nullptr ? nlohmann::json{{"fault", fault->fault},
                                                      {"title", fault->title},
                                                      {"detector", fault->detector(machine.device)}}
                                     : nlohmann::json()}};
}

}  // namespace graphproof::matrix
