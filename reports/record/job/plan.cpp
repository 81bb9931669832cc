#include "reports/record/job/plan.h"

#include <map>

#include "reports/record/text/file.h"

namespace graphproof::record {

Json to_json(const Expect& expect) {
  Json json = {{"kind", expect.kind}};
  const auto add = [&json](const char* key, const std::string& text) {
    if (!text.empty()) json[key] = text;
  };
  add("rule", expect.rule);
  add("says", expect.says);
  add("fault", expect.fault);
  add("detector", expect.detector);
  add("clean_twin", expect.clean_twin);
  add("issue", expect.issue);
  add("verdict", expect.verdict);
  add("owner", expect.owner);
  add("until", expect.until);
  return json;
}

Expect expect_from(const Fields& in) {
  Expect expect{.kind = in.word("kind", {"pass", "rejected", "fault", "known_issue", "hazard"})};
  const auto text = [&in](const char* key) { return in.required<std::string>(key); };
  if (expect.kind == "rejected" || expect.kind == "hazard") expect.rule = text("rule");
  if (expect.kind == "rejected") expect.says = in.optional<std::string>("says").value_or("");
  if (expect.kind == "fault") {
    expect.fault = text("fault");
    expect.detector = text("detector");
    expect.clean_twin = text("clean_twin");
    expect.verdict = in.optional<std::string>("verdict").value_or("");
  }
  if (expect.kind == "known_issue") {
    expect.issue = text("issue");
    expect.owner = text("owner");
    expect.until = text("until");
  }
  if (expect.kind == "known_issue" || expect.kind == "hazard") expect.verdict = text("verdict");
  return expect;
}

Json to_json(const PlanLine& line) {
  Json skip;
  if (line.skip) skip = {{"verdict", line.skip->verdict.text()}, {"why", line.skip->why}};
  return {{"schema", kPlanSchema},
          {"id", line.id},
          {"name", line.name},
          {"axes", line.axes},
          {"ranks", line.ranks},
          {"isolation", line.isolation},
          {"environment", line.environment},
          {"limits_ms", to_json(line.limits_ms)},
          {"expect", to_json(line.expect)},
          {"required_checks", line.required_checks},
          {"skip", skip},
          {"why", line.why},
          {"expected_seconds", line.expected_seconds}};
}

std::string to_line(const PlanLine& line) { return to_json(line).dump() + "\n"; }

PlanLine plan_line_from(const nlohmann::json& value, const std::string& where) {
  const Fields in(value, where);
  in.schema(kPlanSchema);
  // The id is also the name of a folder in the run folder.
  if (const auto id = in.required<std::string>("id");
      id.size() != 16 || id.find_first_not_of("0123456789abcdef") != id.npos)
    in.reject("id", "`" + id + "`", "16 hexadecimal digits");
  PlanLine line{.id = in.required<std::string>("id"),
                .name = in.required<std::string>("name"),
                .axes = in.required<nlohmann::json>("axes"),
                .ranks = in.required<int>("ranks"),
                .isolation = in.word("isolation", {"batch", "process"}),
                .environment = in.required<std::map<std::string, std::string>>("environment"),
                .limits_ms = limits_from(in, "limits_ms", false),
                .expect = expect_from(in.object("expect")),
                .required_checks = in.required<std::vector<std::string>>("required_checks"),
                .skip = {},
                .why = in.required<std::string>("why"),
                .expected_seconds = in.required<double>("expected_seconds")};
  if (const auto skip = in.nullable_object("skip")) {
    const std::string text = skip->required<std::string>("verdict");
    const auto verdict = Verdict::from(text);
    if (!verdict || !(verdict->in("skipped") || verdict->in("unexercised")))
      skip->reject("verdict", "`" + text + "`",
                   "skipped.gpus, skipped.arch, skipped.capability or unexercised");
    line.skip = Skip{.verdict = *verdict, .why = skip->required<std::string>("why")};
  }
  return line;
}

std::vector<PlanLine> plan_from(std::string_view text, const std::string& where) {
  std::vector<PlanLine> plan;
  std::map<std::string, std::size_t> line_of;
  const std::size_t torn_bytes = for_each_line(text, [&](std::string_view line) {
    const std::size_t number = plan.size() + 1;
    const std::string place = where + " line " + std::to_string(number);
    plan.push_back(plan_line_from(parse_json(line, place), place));
    if (const auto [first, added] = line_of.emplace(plan.back().id, number); !added)
      throw ReadError({.what = place + " has the id of line " + std::to_string(first->second),
                       .got = plan.back().id,
                       .want = "another id for each case",
                       .why = "one of the two cases would be taken for the other",
                       .next = "a plan is not edited by hand; start a new run"});
  });
  if (torn_bytes > 0)
    throw ReadError(
        {.what = where + " ends in the middle of line " + std::to_string(plan.size() + 1),
         .got = std::to_string(torn_bytes) + " bytes without a newline",
         .want = "whole lines",
         .why = "a plan is written whole before the first case runs",
         .next = "start a new run; this one has no plan to go by"});
  return plan;
}

}  // namespace graphproof::record
