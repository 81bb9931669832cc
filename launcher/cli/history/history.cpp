// history: keeps what runs found, and answers when a case began to fail
// (reports/history/history.h).
#include <fmt/format.h>

#include <memory>

#include "launcher/cli/history/history_file.h"
#include "launcher/host/run_lock.h"
#include "launcher/run/run_folder.h"
#include "launcher/run/run_reports.h"
#include "matrix/input/input_error.h"
#include "reports/history/index_page.h"
#include "reports/record/text/file.h"
#include "reports/record/text/printable.h"

namespace graphproof::cli {
namespace {

using nlohmann::json;
using record::printable;
using reports::History;

struct HistoryOptions {
  std::string action;
  std::vector<std::string> arguments;
  std::optional<std::string> file;
  int runs = 50;
  bool json = false;
};

/// What an action prints with --json: its own keys after those which say what they are.
json printed(const HistoryOptions& options, const std::string& key, json value) {
  return {{"schema", "graphproof-history/1"}, {"action", options.action}, {key, std::move(value)}};
}

constexpr const char* kStandings[] = {"acceptable", "failed", "not_shown"};

json as_json(const reports::HistoryResult& one) {
  json value = {
      {"run", one.run_id},        {"started", one.started},
      {"verdict", one.verdict},   {"standing", kStandings[static_cast<int>(one.standing)]},
      {"stack", one.fingerprint}, {"step_ms", nullptr}};
  if (one.step_ms) value["step_ms"] = *one.step_ms;
  return value;
}

void add(const HistoryOptions& options, Surroundings& surroundings) {
  std::vector<std::filesystem::path> folders;
  for (const std::string& run :
       options.arguments.empty() ? std::vector<std::string>{"latest"} : options.arguments) {
    folders.push_back(launcher::find_run(surroundings.runs, run));
    if (!std::filesystem::exists(folders.back() / "plan.jsonl"))
      throw matrix::InputError({"this run has no cases", folders.back().string(),
                                "a run of the verb run", "a watched run has no plan",
                                "add runs of cases"});
    if (const auto owner = launcher::RunLock::owner(folders.back()))
      throw matrix::InputError({"this run is still written", folders.back().string(),
                                "a run that has ended", "by " + *owner,
                                "wait for its end: graphproof status --watch"});
  }
  History history = open_history(options.file, surroundings, reports::Database::Mode::write);
  json list = json::array();
  for (const auto& folder : folders) {
    const reports::RunResult run = launcher::read_verdicts(folder);
    const bool is_new = history.add(run);
    list.push_back({{"run", run.run.run_id}, {"cases", run.cases.size()}, {"new", is_new}});
    if (!options.json)
      surroundings.out << fmt::format("{} run {} with {} cases\n", is_new ? "added" : "replaced",
                                      printable(run.run.run_id), run.cases.size());
  }
  // Next to the history, which is next to the runs unless it was put elsewhere.
  const std::filesystem::path index =
      history_path(options.file, surroundings).replace_filename("index.html");
  record::write_atomically(
      index, reports::index_page(history, today(), [&](const std::string& run_id) {
        const std::filesystem::path page = std::filesystem::path(run_id) / "report.html";
        return std::filesystem::exists(index.parent_path() / page) ? page.string() : "";
      }));
  if (options.json)
    surroundings.out << printed(options, "runs", list).dump(2) << "\n";
  else
    surroundings.out << "trends in " << index.string() << "\n";
}

void show(const HistoryOptions& options, Surroundings& surroundings) {
  if (options.arguments.size() != 1)
    throw matrix::InputError(
        {"`history show` needs a case", std::to_string(options.arguments.size()) + " arguments",
         "the name or the id of one case", "", "graphproof history show tp=2"});
  const reports::CaseHistory found =
      open_history(options.file, surroundings, reports::Database::Mode::read)
          .show(options.arguments.front());
  if (options.json) {
    json value = printed(options, "case", found.case_id);
    value.update({{"name", found.name},
                  {"results", json::array()},
                  {"first_bad", nullptr},
                  {"last_good", nullptr},
                  {"changed", json::array()},
                  {"suspects", found.suspects}});
    for (const auto& one : found.results) value["results"].push_back(as_json(one));
    if (found.first_bad) value["first_bad"] = as_json(*found.first_bad);
    if (found.last_good) value["last_good"] = as_json(*found.last_good);
    for (const auto& one : found.changed)
      value["changed"].push_back({{"part", one.part}, {"left", one.left}, {"right", one.right}});
    surroundings.out << value.dump(2) << "\n";
    return;
  }
  surroundings.out << fmt::format("case {} {}\n", found.case_id, printable(found.name));
  for (const auto& one : found.results)
    surroundings.out << fmt::format("  {}  {}  stack {}  {:<22} {}\n", printable(one.started),
                                    printable(one.run_id), one.fingerprint.substr(0, 8),
                                    printable(one.verdict),
                                    one.step_ms ? fmt::format("{:.3f} ms", *one.step_ms) : "");
  if (!found.first_bad) {
    surroundings.out << "it never failed\n";
    return;
  }
  surroundings.out << fmt::format("first bad run of its latest failures: {}\n",
                                  printable(found.first_bad->run_id));
  if (found.last_good)
    surroundings.out << fmt::format("last good run before: {}\n",
                                    printable(found.last_good->run_id));
  for (const auto& one : found.changed)
    surroundings.out << fmt::format("  changed between them: {}: {} -> {}\n", printable(one.part),
                                    printable(one.left), printable(one.right));
  if (found.last_good && found.changed.empty())
    surroundings.out << "  nothing changed in the stack between them: look at flaky\n";
  for (const std::string& one : found.suspects)
    surroundings.out << fmt::format("  in every run that failed and in none that passed: {}\n",
                                    printable(one));
}

void flaky(const HistoryOptions& options, Surroundings& surroundings) {
  const auto found =
      open_history(options.file, surroundings, reports::Database::Mode::read).flaky(options.runs);
  json list = json::array();
  for (const reports::FlakyCase& one : found) {
    list.push_back({{"case", one.case_id},
                    {"name", one.name},
                    {"stack", one.fingerprint},
                    {"failed", one.failed},
                    {"trials", one.trials},
                    {"rate", {one.rate.low, one.rate.high}}});
    if (!options.json)
      surroundings.out << fmt::format(
          "{} of {} runs on stack {} failed (95 % interval {:.0f} to {:.0f} %)  {} {}\n",
          one.failed, one.trials, one.fingerprint.substr(0, 8), 100 * one.rate.low,
          100 * one.rate.high, one.case_id, printable(one.name));
  }
  if (options.json)
    surroundings.out << printed(options, "cases", list).dump(2) << "\n";
  else if (found.empty())
    surroundings.out << "no case passed and failed on one stack\n";
}

void trend(const HistoryOptions& options, Surroundings& surroundings) {
  const auto runs =
      open_history(options.file, surroundings, reports::Database::Mode::read).runs(options.runs);
  json list = json::array();
  if (!options.json)
    surroundings.out << fmt::format("{:<20}  {:<22} {:<12} {:>6} {:>6} {:>9} {:>10}  {:<8}  {}\n",
                                    "started", "run", "profile", "cases", "failed", "not shown",
                                    "seconds", "stack", "step time against the run before");
  for (const reports::HistoryRun& one : runs) {
    list.push_back({{"run", one.run_id},
                    {"started", one.started},
                    {"profile", one.profile},
                    {"device", one.device},
                    {"stack", one.fingerprint},
                    {"cases", one.cases},
                    {"failed", one.failed},
                    {"not_shown", one.not_shown},
                    {"case_seconds", one.case_seconds},
                    {"step_ratio", nullptr},
                    {"step_pairs", one.step_pairs}});
    if (one.step_ratio) list.back()["step_ratio"] = *one.step_ratio;
    if (!options.json)
      surroundings.out << fmt::format(
          "{:<20}  {:<22} {:<12} {:>6} {:>6} {:>9} {:>10.1f}  {:<8}  {}\n", printable(one.started),
          printable(one.run_id), printable(one.profile), one.cases, one.failed, one.not_shown,
          one.case_seconds, one.fingerprint.substr(0, 8),
          one.step_ratio ? fmt::format("x {:.3f} over {} cases", *one.step_ratio, one.step_pairs)
                         : "");
  }
  if (options.json) surroundings.out << printed(options, "runs", list).dump(2) << "\n";
}

record::ExitCode execute_history(const HistoryOptions& options, Surroundings& surroundings) {
  struct Row {
    std::string name;
    void (*run)(const HistoryOptions&, Surroundings&);
  };
  const Row rows[] = {{"add", add}, {"show", show}, {"flaky", flaky}, {"trend", trend}};
  std::vector<std::string> names;
  for (const Row& row : rows) {
    names.push_back(row.name);
    if (row.name != options.action) continue;
    row.run(options, surroundings);
    return record::ExitCode::ok;
  }
  throw matrix::InputError({"no such action of history", "`" + options.action + "`",
                            "one of " + matrix::listed(names), "",
                            matrix::suggestion(options.action, names, "graphproof help history")});
}

}  // namespace

Action declare_history(CLI::App& app) {
  const auto options = std::make_shared<HistoryOptions>();
  app.add_option("ACTION", options->action, "add, show, flaky or trend")
      ->required()
      ->type_name("add|show|flaky|trend");
  app.add_option("WHAT", options->arguments,
                 "for add the runs (default: latest), for show the name or id of a case")
      ->type_name("WHAT");
  declare_history_file(app, options->file);
  app.add_option("--runs", options->runs,
                 "for flaky and trend: how many of the latest runs count (default: 50)")
      ->type_name("N");
  app.add_flag("--json", options->json, "print one JSON value of graphproof-history/1");
  return [options](Surroundings& surroundings) { return execute_history(*options, surroundings); };
}

}  // namespace graphproof::cli
