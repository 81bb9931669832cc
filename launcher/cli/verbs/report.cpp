// report: prints the closing table of a run again. Missing reports are rebuilt from the journal, so
// that a run whose launcher was killed has them too. Of a watched run it prints what the judge
// found.
#include <memory>

#include "launcher/backend/programs.h"
#include "launcher/cli/show/show_run.h"
#include "launcher/cli/verb.h"
#include "launcher/run/judge_again.h"
#include "launcher/run/run.h"
#include "launcher/run/run_folder.h"
#include "launcher/watch/watch.h"
#include "reports/outcome/outcome.h"
#include "reports/outcome/summary.h"

namespace graphproof::cli {
namespace {

struct ReportOptions {
  std::string run = "latest";
  bool judge_again = false, json = false;
};

record::ExitCode report_watched(const std::filesystem::path& folder, const ReportOptions& options,
                                Surroundings& surroundings) {
  reports::WatchedReport report = launcher::read_watched(folder);
  std::error_code absent;
  const bool judged = report.run.ending == "not_started" ||
                      std::filesystem::exists(folder / record::kWatchedChecksFile, absent);
  if (options.judge_again || !judged)
    report = launcher::finish_watch(
        folder, launcher::judge_program(surroundings.programs), [&](const std::string& text) {
          surroundings.err << "graphproof: " << text << "\n" << std::flush;
        });
  if (options.json)
    surroundings.out << reports::watched_json(report).dump(2) << "\n";
  else
    surroundings.out << reports::watched_text(
        report, {.colour = surroundings.terminal, .columns = surroundings.columns});
  return reports::exit_code(report.outcome.verdict);
}

record::ExitCode execute_report(const ReportOptions& options, Surroundings& surroundings) {
  if (const auto watched = launcher::named_watched_run(surroundings.runs, options.run))
    return report_watched(*watched, options, surroundings);
  const std::filesystem::path folder = launcher::find_run(surroundings.runs, options.run);
  reports::RunResult result;
  if (options.judge_again) {
    result = launcher::judge_again(folder, launcher::judge_program(surroundings.programs),
                                   reports::check_effects(surroundings.catalogue.checks));
  } else {
    result = launcher::read_run(folder);
    // Of a run that has reports only the page is made again, so that nothing original is changed.
    if (!std::filesystem::exists(folder / "summary.json"))
      launcher::write_reports(result, folder);
    else if (!std::filesystem::exists(folder / "report.html"))
      launcher::write_page(result, folder);
  }
  show_result(result, folder, surroundings, options.json);
  return reports::exit_code(result);
}

}  // namespace

Action declare_report(CLI::App& app) {
  const auto options = std::make_shared<ReportOptions>();
  app.add_option("RUN", options->run, "the folder or id of a run, or latest (default: latest)")
      ->type_name("RUN");
  app.add_flag("--judge-again", options->judge_again,
               "judge the evidence again with the checks of this version; the journal stays as it "
               "is");
  app.add_flag("--json", options->json,
               "print summary.json and nothing else; of a watched run, one JSON object of "
               "graphproof-watched-report/1");
  return [options](Surroundings& surroundings) { return execute_report(*options, surroundings); };
}

}  // namespace graphproof::cli
