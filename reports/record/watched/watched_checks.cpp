#include "reports/record/watched/watched_checks.h"

namespace graphproof::record {
namespace {

GraphRow graph_row_from(const nlohmann::json& value, const std::string& where, std::size_t index) {
  GraphRow row;
  if (const auto misfit = FieldType<GraphRow>::read(value, row))
    throw ReadError({.what = "`graphs[" + std::to_string(index) + "]" + misfit->place + "` in " +
                             where + " cannot be used",
                     .got = misfit->got,
                     .want = misfit->want,
                     .why = "the file is " + std::string(kWatchedChecksSchema),
                     .next = "judge the run again with this graphproof"});
  return row;
}

}  // namespace

Json to_json(const WatchedChecks& checks) {
  Json results = Json::array();
  for (const CheckResult& result : checks.checks) results.push_back(to_json(result));
  return {{"schema", kWatchedChecksSchema},
          {"checks", std::move(results)},
          {"graphs", FieldType<std::vector<GraphRow>>::write(checks.graphs)},
          {"figures", checks.figures},
          {"notes", checks.notes}};
}

WatchedChecks watched_checks_from(const nlohmann::json& value, const std::string& where) {
  const Fields in(value, where);
  in.schema(kWatchedChecksSchema);
  WatchedChecks checks{.checks = {},
                       .graphs = {},
                       .figures = in.required<std::map<std::string, double>>("figures"),
                       .notes = in.required<std::vector<std::string>>("notes")};
  for (const Fields& result : in.objects("checks"))
    checks.checks.push_back(check_result_from(result));
  for (const nlohmann::json& row : in.required<std::vector<nlohmann::json>>("graphs"))
    checks.graphs.push_back(graph_row_from(row, where, checks.graphs.size()));
  return checks;
}

}  // namespace graphproof::record
