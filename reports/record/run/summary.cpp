#include "reports/record/run/summary.h"

namespace graphproof::record {

Json to_json(const Summary& summary) {
  Json cases = Json::array();
  for (const SummaryCase& one : summary.cases) {
    Json checks = Json::object();
    for (const auto& [check, result] : one.checks) checks[check] = name(result);
    cases.push_back({{"id", one.id},
                     {"name", one.name},
                     {"axes", one.axes},
                     {"verdict", one.verdict.text()},
                     {"isolation", one.isolation},
                     {"ranks", one.ranks},
                     {"seconds", one.seconds},
                     {"checks", checks}});
  }
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
