// resume: continues a run whose launcher was killed, was interrupted, or ran out of time or disk
// space. The plan, the options and the stack are the recorded ones. Cases with a record are not run
// again.
#include <fmt/format.h>

#include <memory>

#include "launcher/cli/run_options.h"
#include "launcher/cli/show/show_run.h"
#include "launcher/cli/verb.h"
#include "launcher/host/run_lock.h"
#include "launcher/run/run_folder.h"
#include "matrix/input/input_error.h"
#include "reports/outcome/summary.h"
#include "reports/record/run/journal.h"

namespace graphproof::cli {
namespace {

struct ResumeOptions {
  std::string run = "latest";
  bool json = false;
};

record::ExitCode execute_resume(const ResumeOptions& options, Surroundings& surroundings) {
  const std::filesystem::path folder = launcher::find_run(surroundings.runs, options.run);
  // This only reports the conflict early. The lock is taken before anything is done.
  if (const auto owner = launcher::RunLock::owner(folder))
    throw matrix::InputError({"the run has not ended", *owner, "a run whose launcher has ended",
                              "two launchers in one run folder would run the same cases twice",
                              "watch it: graphproof status " + folder.string()});
  const reports::RunResult recorded = launcher::read_run(folder);
  if (recorded.ending == reports::Ending::finished) {
    surroundings.err << "run " << recorded.run.run_id
                     << " is finished: there is nothing to resume\n";
    show_result(recorded, folder, surroundings, options.json);
    return reports::exit_code(recorded);
  }
  return run_and_show(recorded_run(folder, surroundings), surroundings, options.json,
                      launcher::resume);
}

}  // namespace

Action declare_resume(CLI::App& app) {
  const auto options = std::make_shared<ResumeOptions>();
  app.add_option("RUN", options->run, "the folder or id of a run, or latest (default: latest)")
      ->type_name("RUN");
  app.add_flag("--json", options->json, "print summary.json at the end and nothing else");
  return [options](Surroundings& surroundings) { return execute_resume(*options, surroundings); };
}

}  // namespace graphproof::cli
