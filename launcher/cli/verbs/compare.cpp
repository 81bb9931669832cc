// compare: compares two runs (reports/analysis/compare.h).
#include <memory>

#include "launcher/cli/verb.h"
#include "launcher/run/run_folder.h"
#include "launcher/run/run_reports.h"
#include "reports/analysis/compare.h"

namespace graphproof::cli {
namespace {

struct CompareOptions {
  std::string left, right = "latest";
  bool json = false;
};

record::ExitCode execute_compare(const CompareOptions& options, Surroundings& surroundings) {
  const auto read = [&](const std::string& run) {
    return launcher::read_run(launcher::find_run(surroundings.runs, run));
  };
  const reports::Comparison comparison = reports::compare(read(options.left), read(options.right));
  surroundings.out << (options.json ? reports::to_json(comparison).dump(2) + "\n"
                                    : reports::text(comparison));
  return reports::exit_code(comparison);
}

}  // namespace

Action declare_compare(CLI::App& app) {
  const auto options = std::make_shared<CompareOptions>();
  app.add_option("A", options->left, "the earlier run: a folder or an id")
      ->required()
      ->type_name("RUN");
  app.add_option("B", options->right, "the later run (default: latest)")->type_name("RUN");
  app.add_flag("--json", options->json, "print one JSON object");
  return [options](Surroundings& surroundings) { return execute_compare(*options, surroundings); };
}

}  // namespace graphproof::cli
