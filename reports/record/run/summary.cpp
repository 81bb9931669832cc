#include "reports/record/run/summary.h"

#include "reports/record/text/file.h"

namespace graphproof::record {

namespace {

Json to_json(const SummaryCase& one) {
  Json checks = Json::object();
  for (const auto& [check, result] : one.checks) checks[check] = name(result);
  return {{"id", one.id},
          {"name", one.name},
          {"axes", one.axes},
          {"verdict", one.verdict.text()},
          {"isolation", one.isolation},
          {"ranks", one.ranks},
          {"seconds", one.seconds},
          {"checks", checks}};
}

}  // namespace

Json to_json(const Summary& summary) {
  Json cases = Json::array();
  for (const SummaryCase& one : summary.cases) cases.push_back(to_json(one));
  const Coverage& coverage = summary.coverage;
  return {{"schema", kSummarySchema},
          {"run_id", summary.run_id},
          {"profile", summary.profile},
          {"device", summary.device},
          {"finished", summary.finished},
          {"stack", to_json(summary.stack)},
          {"wall_seconds", summary.wall_seconds},
          {"counts", summary.counts},
          {"exit_code", summary.exit_code},
          {"coverage",
           {{"planned", coverage.planned},
            {"ran", coverage.ran},
            {"rejected", coverage.rejected},
            {"skipped", coverage.skipped},
            {"not_run", coverage.not_run},
            {"required_checks", coverage.required_checks},
            {"unexercised", coverage.unexercised}}},
          {"cases", cases},
          {"ending", summary.ending}};
}

void put_summary(const Summary& summary, std::size_t cases,
                 const std::function<SummaryCase(std::size_t)>& case_of,
                 const std::function<void(std::string_view)>& put) {
  Summary head = summary;
  head.cases.clear();
  const auto text = [](const Json& value, int indent) {
    return value.dump(indent, ' ', false, Json::error_handler_t::replace);
  };
  const std::string all = text(to_json(head), 2), place = "\"cases\": [";
  const std::size_t at = all.find(place) + place.size();
  put(std::string_view(all).substr(0, at));
  for (std::size_t i = 0; i < cases; ++i)
    put((i == 0 ? "\n    " : ",\n    ") + text(to_json(case_of(i)), -1));
  if (cases > 0) put("\n  ");
  put(std::string_view(all).substr(at));
  put("\n");
}

Summary read_summary_head(const std::filesystem::path& file) {
  const auto without_cases = [](int depth, nlohmann::json::parse_event_t event,
                                const nlohmann::json& parsed) {
    return depth != 1 || event != nlohmann::json::parse_event_t::key || parsed != "cases";
  };
  const std::string text = read_text(file);
  nlohmann::json value = nlohmann::json::parse(text, without_cases, false);
  // A second reading names the place of the mistake.
  if (value.is_discarded()) value = parse_json(text, file.string());
  if (value.is_object()) value["cases"] = nlohmann::json::array();
  return summary_from(value, file.string());
}

Summary summary_from(const nlohmann::json& value, const std::string& where) {
  const Fields in(value, where);
  in.schema(kSummarySchema);
  const Fields coverage = in.object("coverage");
  const bool finished = in.required<bool>("finished");
  Summary summary{.run_id = in.required<std::string>("run_id"),
                  .profile = in.required<std::string>("profile"),
                  .device = in.word("device", {"sim", "cuda"}),
                  .finished = finished,
                  .stack = stack_from(in.object("stack")),
                  .wall_seconds = in.required<double>("wall_seconds"),
                  .counts = in.required<std::map<std::string, int>>("counts"),
                  .exit_code = in.required<int>("exit_code"),
                  .coverage = {.planned = coverage.required<int>("planned"),
                               .ran = coverage.required<int>("ran"),
                               .rejected = coverage.required<int>("rejected"),
                               .skipped = coverage.required<int>("skipped"),
                               .not_run = coverage.required<int>("not_run"),
                               .required_checks = coverage.required<int>("required_checks"),
                               .unexercised = coverage.required<int>("unexercised")},
                  .cases = {},
                  .ending = in.has("ending")
                                ? in.word("ending", {"finished", "interrupted", "budget",
                                                     "circuit_breaker", "max_fail", "disk"})
                            : finished ? "finished"
                                       : "interrupted"};
  for (const Fields& one : in.objects("cases")) {
    const std::string verdict = one.required<std::string>("verdict");
    if (!Verdict::from(verdict)) one.reject("verdict", "`" + verdict + "`", "a verdict");
    SummaryCase result{.id = one.required<std::string>("id"),
                       .name = one.required<std::string>("name"),
                       .axes = one.required<nlohmann::json>("axes"),
                       .verdict = *Verdict::from(verdict),
                       .isolation = one.required<std::string>("isolation"),
                       .ranks = one.required<int>("ranks"),
                       .seconds = one.required<double>("seconds"),
                       .checks = {}};
    for (const auto& [check, text] : one.required<std::map<std::string, std::string>>("checks")) {
      const auto known = result_from(text);
      if (!known)
        one.object("checks").reject(check, "`" + text + "`",
                                    "pass, fail, unexercised or not_applicable");
      result.checks[check] = *known;
    }
    summary.cases.push_back(std::move(result));
  }
  return summary;
}

}  // namespace graphproof::record
