// merge: joins the runs of the shards of a plan into one run.
#include "launcher/run/merge.h"

#include <memory>

#include "launcher/cli/run_options.h"
#include "launcher/cli/show/show_run.h"
#include "launcher/cli/verb.h"
#include "launcher/run/run_folder.h"
#include "reports/outcome/summary.h"

namespace graphproof::cli {
namespace {

struct MergeOptions {
  std::vector<std::string> runs;
  std::optional<std::string> run_dir;
  bool json = false;
};

record::ExitCode execute_merge(const MergeOptions& options, Surroundings& surroundings) {
  std::vector<std::filesystem::path> shards;
  for (const std::string& run : options.runs)
    shards.push_back(launcher::find_run(surroundings.runs, run));
  launcher::expect_mergeable(shards);
  const std::string run_id = new_run_id();
  const auto folder = launcher::create_run_folder(surroundings.runs, options.run_dir, run_id);
  const reports::RunResult result =
      launcher::merge(shards, {folder, run_id, surroundings.command_line});
  show_result(result, folder, surroundings, options.json);
  return reports::exit_code(result);
}

}  // namespace

Action declare_merge(CLI::App& app) {
  const auto options = std::make_shared<MergeOptions>();
  app.add_option("RUN", options->runs, "the runs of all shards: folders or ids")
      ->required()
      ->type_name("RUN");
  app.add_option("--run-dir", options->run_dir,
                 "the folder of the new run, absent or empty (default: runs/RUN_ID)")
      ->type_name("FOLDER");
  app.add_flag("--json", options->json, "print summary.json and nothing else");
  return [options](Surroundings& surroundings) { return execute_merge(*options, surroundings); };
}

}  // namespace graphproof::cli
