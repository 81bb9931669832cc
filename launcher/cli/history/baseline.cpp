// baseline: failures that are accepted until a day, and what a run has beyond them.
#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <memory>

#include "launcher/cli/history/history_file.h"
#include "launcher/run/run_folder.h"
#include "launcher/run/run_reports.h"
#include "matrix/case/case.h"
#include "matrix/input/input_error.h"
#include "reports/record/text/printable.h"

namespace graphproof::cli {
namespace {

using nlohmann::json;
using record::ExitCode;
using record::printable;
using reports::Database;

struct BaselineOptions {
  std::string action, what, reason, owner, until;
  std::optional<std::string> file;
  bool json = false;
};

/// Whether `text` is a day of the calendar, YYYY-MM-DD.
bool is_day(const std::string& text) {
  int year = 0, month = 0, day = 0, read = 0;
  if (text.size() != 10 ||
      std::sscanf(text.c_str(), "%4d-%2d-%2d%n", &year, &month, &day, &read) != 3 || read != 10)
    return false;
  return std::chrono::year_month_day(std::chrono::year(year),
                                     std::chrono::month(static_cast<unsigned>(month)),
                                     std::chrono::day(static_cast<unsigned>(day)))
      .ok();
}

void expect_complete(const BaselineOptions& options) {
  const std::pair<const char*, const std::string*> needed[] = {
      {"--reason", &options.reason}, {"--owner", &options.owner}, {"--until", &options.until}};
  for (const auto& [option, value] : needed)
    if (value->empty())
      throw matrix::InputError({"a failure can't be accepted without " + std::string(option), "",
                                "a reason, an owner and the last day",
                                "a failure that nobody follows is never mended",
                                "add " + std::string(option)});
  if (!is_day(options.until) || options.until < today())
    throw matrix::InputError({"--until is no day to come", "`" + options.until + "`",
                              "YYYY-MM-DD, today or later", "until that day the failure is excused",
                              "write it as 2027-03-01"});
}

json as_json(const reports::AcceptedFailure& one) {
  return {{"case", one.case_id},      {"name", one.name},   {"verdict", one.verdict},
          {"reason", one.reason},     {"owner", one.owner}, {"until", one.until},
          {"accepted", one.accepted}, {"run", one.run_id}};
}

/// What an action prints with --json.
json printed(const BaselineOptions& options, const std::string& key, json value) {
  return {{"schema", "graphproof-baseline/1"}, {"action", options.action}, {key, std::move(value)}};
}

std::string as_text(const reports::AcceptedFailure& one) {
  return printable(fmt::format("{} of {}, until {}{}: {}", one.verdict, one.owner, one.until,
                               one.until < today() ? " (expired)" : "", one.reason));
}

ExitCode accept(const BaselineOptions& options, Surroundings& surroundings) {
  expect_complete(options);
  const launcher::CaseReference parts = launcher::split_reference(options.what);
  const reports::RunResult run =
      launcher::read_verdicts(launcher::find_run(surroundings.runs, parts.run.value_or("latest")));
  std::vector<matrix::KnownCase> known;
  for (const reports::CaseResult& result : run.cases)
    known.push_back({result.plan.id, result.plan.name});
  const reports::CaseResult& one = run.cases.at(matrix::resolve_case(parts.case_text, known));
  if (reports::standing(one.record) != reports::Standing::failed)
    throw matrix::InputError({"this case did not fail", std::string(one.record.verdict.text()),
                              "a verdict fail.*", "only what was seen is accepted",
                              "graphproof list cases"});
  reports::AcceptedFailure failure{.case_id = one.plan.id,
                                   .name = one.plan.name,
                                   .verdict = std::string(one.record.verdict.text()),
                                   .reason = options.reason,
                                   .owner = options.owner,
                                   .until = options.until,
                                   .accepted = today(),
                                   .run_id = run.run.run_id};
  open_history(options.file, surroundings, Database::Mode::write).accept(failure);
  if (options.json)
    surroundings.out << printed(options, "accepted", as_json(failure)).dump(2) << "\n";
  else
    surroundings.out << fmt::format("accepted {} {}: {}\n", failure.case_id,
                                    printable(failure.name), as_text(failure));
  return ExitCode::ok;
}

ExitCode show(const BaselineOptions& options, Surroundings& surroundings) {
  const auto accepted = open_history(options.file, surroundings, Database::Mode::read).accepted();
  json list = json::array();
  for (const reports::AcceptedFailure& one : accepted) {
    list.push_back(as_json(one));
    if (!options.json)
      surroundings.out << fmt::format("{} {}: {}\n", one.case_id, printable(one.name),
                                      as_text(one));
  }
  if (options.json)
    surroundings.out << printed(options, "accepted", list).dump(2) << "\n";
  else if (accepted.empty())
    surroundings.out << "no failure is accepted\n";
  return ExitCode::ok;
}

ExitCode diff(const BaselineOptions& options, Surroundings& surroundings) {
  const reports::RunResult run = launcher::read_verdicts(
      launcher::find_run(surroundings.runs, options.what.empty() ? "latest" : options.what));
  const auto found = reports::baseline_difference(
      run, open_history(options.file, surroundings, Database::Mode::read).accepted(), today());
  json list = json::array();
  for (const reports::BaselineDifference& one : found) {
    list.push_back({{"case", one.case_id},
                    {"name", one.name},
                    {"verdict", one.verdict},
                    {"state", reports::name(one.state)},
                    {"accepted", nullptr}});
    if (one.accepted) list.back()["accepted"] = as_json(*one.accepted);
    if (!options.json)
      surroundings.out << fmt::format("{:<8} {:<22} {} {}: {}{}\n", reports::name(one.state),
                                      one.verdict, one.case_id, printable(one.name),
                                      reports::meaning(one.state),
                                      one.accepted ? "; accepted: " + as_text(*one.accepted) : "");
  }
  const ExitCode code = reports::exit_code(run, found);
  if (options.json) {
    json value = printed(options, "cases", list);
    value.update({{"run", run.run.run_id}, {"exit_code", record::value(code)}});
    surroundings.out << value.dump(2) << "\n";
  } else if (found.empty()) {
    surroundings.out << "no case of the run fails, and none was accepted\n";
  }
  return code;
}

ExitCode execute_baseline(const BaselineOptions& options, Surroundings& surroundings) {
  struct Row {
    std::string name;
    ExitCode (*run)(const BaselineOptions&, Surroundings&);
  };
  const Row rows[] = {{"accept", accept}, {"show", show}, {"diff", diff}};
  std::vector<std::string> names;
  for (const Row& row : rows) {
    if (row.name == options.action) return row.run(options, surroundings);
    names.push_back(row.name);
  }
  throw matrix::InputError({"no such action of baseline", "`" + options.action + "`",
                            "one of " + matrix::listed(names), "",
                            matrix::suggestion(options.action, names, "graphproof help baseline")});
}

}  // namespace

Action declare_baseline(CLI::App& app) {
  const auto options = std::make_shared<BaselineOptions>();
  app.add_option("ACTION", options->action, "accept, show or diff")
      ->required()
      ->type_name("accept|show|diff");
  app.add_option("WHAT", options->what,
                 "for accept RUN/CASE of the failure, for diff the run (default: latest)")
      ->type_name("WHAT");
  app.add_option("--reason", options->reason, "for accept: why the failure may stay")
      ->type_name("REASON");
  app.add_option("--owner", options->owner, "for accept: who follows it")->type_name("NAME");
  app.add_option("--until", options->until, "for accept: the last day, YYYY-MM-DD")
      ->type_name("DATE");
  declare_history_file(app, options->file);
  app.add_flag("--json", options->json, "print one JSON value of graphproof-baseline/1");
  return [options](Surroundings& surroundings) { return execute_baseline(*options, surroundings); };
}

}  // namespace graphproof::cli
