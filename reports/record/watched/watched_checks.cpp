#include "reports/record/watched/watched_checks.h"

namespace graphproof::record {
namespace {

/// The rows of the list `key`.
template <class Row>
std::vector<Row> rows_from(const std::vector<nlohmann::json>& values, const char* key,
                           const std::string& where) {
  std::vector<Row> rows(values.size());
  for (std::size_t index = 0; index < values.size(); ++index)
    if (const auto misfit = FieldType<Row>::read(values[index], rows[index]))
      throw ReadError({.what = "`" + std::string(key) + "[" + std::to_string(index) + "]" +
                               misfit->place + "` in " + where + " cannot be used",
                       .got = misfit->got,
                       .want = misfit->want,
                       .why = "the file is " + std::string(kWatchedChecksSchema),
                       .next = "judge the run again with this graphproof"});
  return rows;
}

}  // namespace

Json to_json(const WatchedChecks& checks) {
  Json results = Json::array();
  for (const CheckResult& result : checks.checks) results.push_back(to_json(result));
  Json value = {{"schema", kWatchedChecksSchema},
                {"checks", std::move(results)},
                {"graphs", FieldType<std::vector<GraphRow>>::write(checks.graphs)},
                {"figures", checks.figures},
                {"notes", checks.notes}};
  if (!checks.failed_processes.empty())
    value["failed_processes"] =
        FieldType<std::vector<FailedProcess>>::write(checks.failed_processes);
  return value;
}

WatchedChecks watched_checks_from(const nlohmann::json& value, const std::string& where) {
  const Fields in(value, where);
  in.schema(kWatchedChecksSchema);
  WatchedChecks checks{.checks = {},
                       .graphs = {},
                       .figures = in.required<std::map<std::string, double>>("figures"),
                       .notes = in.required<std::vector<std::string>>("notes"),
                       .failed_processes = {}};
  for (const Fields& result : in.objects("checks"))
    checks.checks.push_back(check_result_from(result));
  using Rows = std::vector<nlohmann::json>;
  checks.graphs = rows_from<GraphRow>(in.required<Rows>("graphs"), "graphs", where);
  if (const auto failed = in.optional<Rows>("failed_processes"))
    checks.failed_processes = rows_from<FailedProcess>(*failed, "failed_processes", where);
  return checks;
}

}  // namespace graphproof::record
