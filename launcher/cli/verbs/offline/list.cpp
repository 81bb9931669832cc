// list: prints what there is to choose from.
#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "launcher/cli/verb.h"
#include "launcher/run/run.h"
#include "launcher/run/run_folder.h"
#include "launcher/watch/watch.h"
#include "matrix/input/input_error.h"
#include "matrix/plan/listing.h"
#include "reports/outcome/summary.h"
#include "reports/record/text/printable.h"

namespace graphproof::cli {
namespace {

using nlohmann::json;

struct ListOptions {
  std::string what, run = "latest";
  bool json = false;
};

json list_runs(const Surroundings& surroundings) {
  json list = json::array();
  for (const std::string& id : launcher::run_ids(surroundings.runs)) {
    const reports::RunResult result = launcher::read_run(surroundings.runs / id);
    const record::Summary summary = reports::summary(result);
    list.push_back({{"run", id},
                    {"kind", "cases"},
                    {"profile", summary.profile},
                    {"device", summary.device},
                    {"cases", summary.coverage.planned},
                    {"finished", summary.finished},
                    {"exit_code", summary.exit_code}});
  }
  for (const std::string& id : launcher::watched_run_ids(surroundings.runs)) {
    const reports::WatchedReport report = launcher::read_watched(surroundings.runs / id);
    list.push_back({{"run", id},
                    {"kind", "watched"},
                    {"profile", report.run.profile},
                    {"device", "cuda"},
                    {"cases", nullptr},
                    {"finished", report.run.ending != "running"},
                    {"exit_code", record::value(reports::exit_code(report.outcome.verdict))},
                    {"verdict", reports::name(report.outcome.verdict)},
                    {"command", reports::command_text(report.run.command)}});
  }
  // Ids begin with the time.
  std::stable_sort(list.begin(), list.end(), [](const json& left, const json& right) {
    return left["run"].get_ref<const std::string&>() > right["run"].get_ref<const std::string&>();
  });
  return list;
}

json list_cases(const ListOptions& options, const Surroundings& surroundings) {
  json list = json::array();
  for (const reports::CaseResult& one :
       launcher::read_run(launcher::find_run(surroundings.runs, options.run)).cases)
    list.push_back({{"id", one.plan.id},
                    {"verdict", one.record.verdict.text()},
                    {"ranks", one.plan.ranks},
                    {"name", one.plan.name}});
  return list;
}

/// Something that can be listed: its name, the columns of its text form, and its rows.
struct Listing {
  std::string_view what;
  std::vector<const char*> columns;
  std::function<json(const ListOptions&, const Surroundings&)> rows;
};

const std::vector<Listing>& listings() {
  const auto of_catalogue = [](json (*rows)(const matrix::Catalogue&)) {
    return [rows](const ListOptions&, const Surroundings& surroundings) {
      return rows(surroundings.catalogue);
    };
  };
  static const std::vector<Listing> table = {
      {"axes",
       {"name", "type", "values", "default", "unit", "meaning"},
       of_catalogue(matrix::list_axes)},
      {"profiles", {"profile", "cases", "meaning"}, of_catalogue(matrix::list_profiles)},
      {"rules", {"rule", "stage", "status", "severity", "what"}, of_catalogue(matrix::list_rules)},
      {"checks", {"check", "verdict", "devices", "states"}, of_catalogue(matrix::list_checks)},
      {"faults",
       {"fault", "name", "detector", "isolation", "devices", "title"},
       of_catalogue(matrix::list_faults)},
      {"runs",
       {"run", "kind", "profile", "device", "cases", "finished", "exit_code", "verdict", "command"},
       [](const ListOptions&, const Surroundings& surroundings) {
         return list_runs(surroundings);
       }},
      {"cases", {"id", "verdict", "ranks", "name"}, list_cases},
  };
  return table;
}

std::string cell(const json& row, const char* column) {
  const auto found = row.find(column);
  if (found == row.end() || found->is_null()) return {};
  if (found->is_string()) return record::printable(found->get<std::string>());
  if (!found->is_array()) return record::printable(found->dump());
  std::string text;
  for (const json& item : *found)
    text += (text.empty() ? "" : ",") + (item.is_string() ? item.get<std::string>() : item.dump());
  return record::printable(text);
}

/// Prints columns that are as wide as their widest cell. The last column is not padded.
void print(const json& rows, const std::vector<const char*>& columns, std::ostream& out) {
  static constexpr std::size_t kWidest = 44;
  std::vector<std::size_t> widths;
  for (const char* column : columns) {
    widths.push_back(0);
    for (const json& row : rows)
      widths.back() = std::max(widths.back(), std::min(kWidest, cell(row, column).size()));
  }
  for (const json& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < columns.size(); ++i) {
      if (widths[i] == 0) continue;
      const std::string text = cell(row, columns[i]);
      line += i + 1 == columns.size() ? text : fmt::format("{:<{}}  ", text, widths[i]);
    }
    out << line << "\n";
  }
}

record::ExitCode execute_list(const ListOptions& options, Surroundings& surroundings) {
  std::vector<std::string> names;
  for (const Listing& listing : listings()) {
    names.emplace_back(listing.what);
    if (listing.what != options.what) continue;
    const json rows = listing.rows(options, surroundings);
    if (options.json)
      surroundings.out << rows.dump(2) << "\n";
    else
      print(rows, listing.columns, surroundings.out);
    return record::ExitCode::ok;
  }
  throw matrix::InputError({"can't list `" + options.what + "`", options.what,
                            "one of " + matrix::listed(names), "",
                            matrix::suggestion(options.what, names, "graphproof list axes")});
}

}  // namespace

Action declare_list(CLI::App& app) {
  const auto options = std::make_shared<ListOptions>();
  app.add_option("WHAT", options->what, "axes, profiles, rules, checks, faults, runs or cases")
      ->required()
      ->type_name("axes|profiles|rules|checks|faults|runs|cases");
  app.add_option("--run", options->run, "the run whose cases are listed (default: latest)")
      ->type_name("RUN");
  app.add_flag("--json", options->json, "print a JSON list");
  return [options](Surroundings& surroundings) { return execute_list(*options, surroundings); };
}

}  // namespace graphproof::cli
