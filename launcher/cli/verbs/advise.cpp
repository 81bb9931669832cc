// advise: whether a CUDA graph is worth it, from what a case or a watched run measured.
#include <algorithm>
#include <memory>

#include "launcher/cli/find_case.h"
#include "launcher/cli/verb.h"
#include "launcher/run/run_folder.h"
#include "launcher/run/run_reports.h"
#include "launcher/watch/watch.h"
#include "matrix/input/input_error.h"
#include "reports/analysis/advice.h"

namespace graphproof::cli {
namespace {

struct AdviseOptions {
  std::string reference = "latest";
  bool json = false;
};

reports::Advice advice_on_watched(const std::filesystem::path& folder) {
  const reports::WatchedReport report = launcher::read_watched(folder);
  std::error_code absent;
  if (!std::filesystem::exists(folder / record::kWatchedChecksFile, absent))
    throw matrix::InputError({"the watched run was not judged", folder.string(),
                              "a run that the judge has read", "its numbers come from the judge",
                              "graphproof report " + folder.string()});
  return reports::advise(report.run, report.checks);
}

reports::Advice advice_on_case(const std::string& reference, const Surroundings& surroundings) {
  const FoundCase found = find_case(reference, surroundings);
  if (found.run) {
    const reports::RunResult run = launcher::read_verdicts(*found.run);
    const auto one = std::ranges::find(run.cases, found.line->id,
                                       [](const auto& result) { return result.plan.id; });
    if (one != run.cases.end()) return reports::advise(run, *one);
  }
  throw matrix::InputError({"the case has not run", reference, "a case of a run, or a watched run",
                            "advice needs measurements", "run it: graphproof repro " + reference});
}

record::ExitCode execute_advise(const AdviseOptions& options, Surroundings& surroundings) {
  const auto watched = launcher::named_watched_run(surroundings.runs, options.reference);
  const reports::Advice advice =
      watched ? advice_on_watched(*watched) : advice_on_case(options.reference, surroundings);
  if (options.json)
    surroundings.out << reports::to_json(advice).dump(2) << "\n";
  else
    surroundings.out << reports::advice_text(advice);
  return advice.answer == "unknown" ? record::ExitCode::coverage : record::ExitCode::ok;
}

}  // namespace

Action declare_advise(CLI::App& app) {
  const auto options = std::make_shared<AdviseOptions>();
  app.add_option(
         "CASE", options->reference,
         "a case of a run: an id prefix, a name, or RUN/CASE; or a watched run: its folder, "
         "its id, or latest")
      ->type_name("RUN|CASE");
  app.add_flag("--json", options->json, "print one JSON object");
  return [options](Surroundings& surroundings) { return execute_advise(*options, surroundings); };
}

}  // namespace graphproof::cli
