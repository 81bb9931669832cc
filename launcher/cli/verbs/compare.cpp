// compare: compares two runs (reports/analysis/compare.h) and applies gates to what differs.
#include <future>
#include <memory>

#include "launcher/cli/verb.h"
#include "launcher/host/run_lock.h"
#include "launcher/run/run_folder.h"
#include "launcher/run/run_reports.h"
#include "matrix/input/input_error.h"
#include "reports/analysis/compare.h"
#include "reports/analysis/gates.h"
#include "reports/print/compare_report.h"

namespace graphproof::cli {
namespace {

namespace fs = std::filesystem;

struct CompareOptions {
  std::string left, right = "latest", format = "text", fail_on;
  bool json = false;
};

[[noreturn]] void refuse(const std::string& got, const std::string& why, const std::string& next) {
  throw matrix::InputError(
      {"these runs can't be compared", got, "two finished runs of the same cases", why, next});
}

void refuse_unfit(const fs::path& folder) {
  if (!fs::exists(folder / "plan.jsonl"))
    refuse(folder.string(), "it has no plan of cases, as a watched run",
           "compare runs of the verb run");
  if (const auto owner = launcher::RunLock::owner(folder))
    refuse(folder.string() + " is still written by " + *owner,
           "its other cases would count as lost", "wait for its end: graphproof status --watch");
}

reports::CompareFormat format_of(const std::string& name) {
  const std::pair<std::string, reports::CompareFormat> formats[] = {
      {"text", reports::CompareFormat::text},
      {"markdown", reports::CompareFormat::markdown},
      {"html", reports::CompareFormat::html}};
  std::vector<std::string> names;
  for (const auto& [known, format] : formats) {
    if (known == name) return format;
    names.push_back(known);
  }
  throw matrix::InputError({"no such format", "`" + name + "`", "one of " + matrix::listed(names),
                            "", matrix::suggestion(name, names, "leave out --format for text")});
}

record::ExitCode execute_compare(const CompareOptions& options, Surroundings& surroundings) {
  const reports::CompareFormat format = format_of(options.format);
  std::vector<reports::Gate> gates;
  if (!options.fail_on.empty()) gates = reports::parse_gates(options.fail_on);
  const fs::path left_folder = launcher::find_run(surroundings.runs, options.left),
                 right_folder = launcher::find_run(surroundings.runs, options.right);
  refuse_unfit(left_folder);
  refuse_unfit(right_folder);
  auto other = std::async(std::launch::async, launcher::read_verdicts, right_folder);
  const reports::RunResult left = launcher::read_verdicts(left_folder);
  const reports::RunResult right = other.get();
  if (const auto reason = reports::not_comparable(left, right))
    refuse(reason->got, reason->why, reason->next);

  const reports::Comparison comparison =
      reports::compare(left, right, reports::drifts(left, left_folder, right, right_folder));
  surroundings.out << (options.json ? reports::to_json(comparison, gates).dump(2) + "\n"
                                    : reports::compare_report(comparison, gates, format));
  return gates.empty() ? reports::exit_code(comparison) : reports::exit_code(gates, comparison);
}

}  // namespace

Action declare_compare(CLI::App& app) {
  const auto options = std::make_shared<CompareOptions>();
  app.add_option("A", options->left, "the earlier run: a folder or an id")
      ->required()
      ->type_name("RUN");
  app.add_option("B", options->right, "the later run (default: latest)")->type_name("RUN");
  app.add_option("--fail-on", options->fail_on,
                 "what fails, separated by commas: broken, lost, changed, drift[>CLASS], perf>P%, "
                 "capture>P%, memory>P% (default: broken, lost)")
      ->type_name("GATES");
  app.add_option("--format", options->format, "text, markdown or html (default: text)")
      ->type_name("text|markdown|html");
  app.add_flag("--json", options->json, "print one JSON object");
  return [options](Surroundings& surroundings) { return execute_compare(*options, surroundings); };
}

}  // namespace graphproof::cli
