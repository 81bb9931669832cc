// rerun: runs cases of a recorded run again, from its plan, as a new run that names its parent. The
// parent stays as it is: a failure that passes later is a second result and does not replace the
// first.
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <set>

#include "launcher/cli/device_option.h"
#include "launcher/cli/planning.h"
#include "launcher/cli/run_options.h"
#include "launcher/cli/show/show_run.h"
#include "launcher/cli/verb.h"
#include "launcher/run/run_folder.h"
#include "matrix/expression/expression.h"
#include "matrix/input/input_error.h"
#include "reports/outcome/summary.h"

namespace graphproof::cli {
namespace {

struct RerunOptions {
  std::string run = "latest";
  std::vector<std::string> cases;
  std::string verdict, where;
  bool failed = false, infra = false, json = false;
  RunOptions options;
};

/// Throws InputError unless `text` is a verdict or a dotted prefix of one, such as fail.hang or
/// infra.
void expect_verdict(const std::string& text) {
  std::vector<std::string> known;
  for (const record::VerdictRow& row : record::kVerdicts) {
    known.emplace_back(row.text);
    if (record::Verdict::from(row.text)->in(text)) return;
  }
  throw matrix::InputError(
      {"no verdict `" + text + "`", text, "a verdict or the beginning of one, such as fail.hang",
       "", matrix::suggestion(text, known, "graphproof list cases shows the verdicts of a run")});
}

bool wanted(const RerunOptions& options, const record::Record& record) {
  const record::ExitCode code = reports::exit_code(record.verdict, record.rule);
  return (options.failed && code == record::ExitCode::product) ||
         (options.infra && record.verdict.in("infra")) ||
         (!options.verdict.empty() && record.verdict.in(options.verdict));
}

/// The ids of the cases that the command line names.
std::set<std::string> named_cases(const RerunOptions& options, const reports::RunResult& parent) {
  std::vector<matrix::KnownCase> known;
  for (const reports::CaseResult& one : parent.cases) known.push_back({one.plan.id, one.plan.name});
  std::set<std::string> ids;
  for (const std::string& text : options.cases)
    ids.insert(parent.cases.at(matrix::resolve_case(text, known)).plan.id);
  return ids;
}

/// Whether --where is true for a case. A case for which it is unknown is not selected.
std::function<bool(const record::PlanLine&)> where(const RerunOptions& options,
                                                   const launcher::Device& device,
                                                   const Surroundings& surroundings) {
  if (options.where.empty()) return [](const record::PlanLine&) { return true; };
  const matrix::AxisTable& axes = surroundings.catalogue.axes;
  return [&axes, machine = machine_of(device),
          condition = matrix::Expression::condition(
              options.where, matrix::Scope{&axes, {}},
              matrix::Origin::option("--where", options.where))](const record::PlanLine& line) {
    return condition.holds(matrix::case_from_json(axes, line.axes, "plan.jsonl"), machine) ==
           matrix::Truth::yes;
  };
}

record::ExitCode execute_rerun(const RerunOptions& options, Surroundings& surroundings) {
  if (options.cases.empty() && !options.failed && !options.infra && options.verdict.empty() &&
      options.where.empty())
    throw matrix::InputError({"no cases are selected",
                              "no CASE and none of --failed, --infra, --verdict, --where",
                              "one of them", "to repeat a whole run, use graphproof run",
                              "graphproof rerun " + options.run + " --failed"});
  if (!options.verdict.empty()) expect_verdict(options.verdict);
  const reports::RunResult parent =
      launcher::read_run(launcher::find_run(surroundings.runs, options.run));
  const std::set<std::string> named = named_cases(options, parent);
  const launcher::Device device =
      device_on(cluster_of(options.options.cluster), parent.run.device, surroundings,
                parent.run.options.sharing.without_other_cases());
  const auto meets = where(options, device, surroundings);
  // --where alone selects cases. Together with a selection by verdict it narrows that selection.
  const bool by_verdict = options.failed || options.infra || !options.verdict.empty();
  std::vector<record::PlanLine> lines;
  for (const reports::CaseResult& one : parent.cases) {
    const bool selected = by_verdict ? wanted(options, one.record) && meets(one.plan)
                                     : !options.where.empty() && meets(one.plan);
    if (!named.contains(one.plan.id) && !selected) continue;
    lines.push_back(one.plan);
    lines.back().why = "rerun of " + parent.run.run_id;
  }
  if (lines.empty()) {
    surroundings.err << "run " << parent.run.run_id << " has no such case: nothing is run\n";
    if (options.json)
      surroundings.out << nlohmann::json{{"parent", parent.run.run_id}, {"selected", 0}}.dump(2)
                       << "\n";
    return record::ExitCode::coverage;
  }
  launcher::RunSetup setup = new_run(device, options.options, surroundings);
  skip_too_large(lines, device);
  apply_gpu_sharing(lines, device, surroundings.catalogue.checks);
  apply_isolation(lines, setup.run.options.isolation);
  setup.run.profile = parent.run.profile;
  setup.run.matrix = parent.run.matrix;
  setup.run.seed = parent.run.seed;
  setup.run.parent = parent.run.run_id;
  setup.plan = std::move(lines);
  return run_and_show(setup, surroundings, options.json);
}

}  // namespace

Action declare_rerun(CLI::App& app) {
  const auto options = std::make_shared<RerunOptions>();
  app.add_option("RUN", options->run, "the recorded run: its folder, its id, or latest")
      ->required()
      ->type_name("RUN");
  app.add_option("CASE", options->cases, "cases of it, as id prefixes or names")->type_name("CASE");
  app.option_defaults()->group("Which cases");
  app.add_flag("--failed", options->failed, "those whose verdict is a failure (exit code 1)");
  app.add_flag("--infra", options->infra, "those whose verdict is infra.*");
  app.add_option("--verdict", options->verdict,
                 "those whose verdict is this one or begins with it, such as fail.hang")
      ->type_name("VERDICT");
  app.add_option("--where", options->where,
                 "those for which this expression is true, such as 'tp == 2'; together with the "
                 "options above it narrows their choice")
      ->type_name("EXPR");
  declare(app, options->options);
  app.option_defaults()->group(kOutput);
  app.add_flag("--json", options->json, "print summary.json at the end and nothing else");
  return [options](Surroundings& surroundings) { return execute_rerun(*options, surroundings); };
}

}  // namespace graphproof::cli
