// report: prints the closing table of a run again, or makes files for other programs. Missing
// reports are rebuilt from the journal, so that a run whose launcher was killed has them too. Of a
// watched run it prints what the judge found.
#include <algorithm>
#include <memory>

#include "launcher/backend/programs.h"
#include "launcher/cli/show/show_run.h"
#include "launcher/cli/verb.h"
#include "launcher/run/judge_again.h"
#include "launcher/run/run.h"
#include "launcher/run/run_folder.h"
#include "launcher/watch/watch.h"
#include "matrix/input/input_error.h"
#include "reports/outcome/outcome.h"
#include "reports/outcome/summary.h"
#include "reports/print/formats/formats.h"
#include "reports/record/text/file.h"

namespace graphproof::cli {
namespace {

struct ReportOptions {
  std::string run = "latest";
  std::vector<std::string> formats;
  bool judge_again = false, json = false;
};

/// The formats with these names, each once.
std::vector<const reports::Format*> chosen(const std::vector<std::string>& names) {
  std::vector<const reports::Format*> found;
  for (const std::string& name : names) {
    std::vector<std::string> known;
    const reports::Format* match = nullptr;
    for (const reports::Format& format : reports::formats()) {
      known.emplace_back(format.name);
      if (format.name == name) match = &format;
    }
    if (match == nullptr)
      throw matrix::InputError({"no such format", "`" + name + "`",
                                "one of " + matrix::listed(known),
                                "junit.xml and summary.md are written for every run",
                                matrix::suggestion(name, known, "graphproof help report")});
    if (std::find(found.begin(), found.end(), match) == found.end()) found.push_back(match);
  }
  return found;
}

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
  const auto formats = chosen(options.formats);
  if (const auto watched = launcher::named_watched_run(surroundings.runs, options.run)) {
    if (!formats.empty())
      throw matrix::InputError({"--format does not go with a watched run", watched->string(),
                                "a run of cases", "a watched run has no cases to list",
                                "its own reports are report.md and page.html"});
    return report_watched(*watched, options, surroundings);
  }
  const std::filesystem::path folder = launcher::find_run(surroundings.runs, options.run);
  reports::RunResult result;
  bool unwritten = false;
  if (options.judge_again) {
    result = launcher::judge_again(folder, launcher::judge_program(surroundings.programs),
                                   reports::check_effects(surroundings.catalogue.checks));
  } else {
    result = launcher::read_run(folder);
    // Of a run that has reports only the page is made again, so that nothing original is changed.
    // Where nothing can be written the result is printed all the same.
    try {
      if (!std::filesystem::exists(folder / "summary.json"))
        launcher::write_reports(result, folder);
      else if (!std::filesystem::exists(folder / "report.html"))
        launcher::write_page(result, folder);
    } catch (const record::WriteError& error) {
      surroundings.err << error.what() << "\n";
      unwritten = true;
    }
  }
  for (const reports::Format* format : formats) {
    if (format->file.empty()) {
      format->put(result, folder, [&](std::string_view piece) { surroundings.out << piece; });
      continue;
    }
    record::AtomicFile file(folder / format->file);
    format->put(result, folder, [&](std::string_view piece) { file.append(piece); });
    file.commit();
    surroundings.out << (folder / format->file).string() << "\n";
  }
  if (formats.empty()) show_result(result, folder, surroundings, options.json);
  const record::ExitCode code = reports::exit_code(result);
  return unwritten ? record::stronger(code, record::ExitCode::infrastructure) : code;
}

}  // namespace

Action declare_report(CLI::App& app) {
  const auto options = std::make_shared<ReportOptions>();
  app.add_option("RUN", options->run, "the folder or id of a run, or latest (default: latest)")
      ->type_name("RUN");
  app.add_flag("--judge-again", options->judge_again,
               "judge the evidence again with the checks of this version; the journal stays as it "
               "is");
  CLI::Option* formats =
      app.add_option("--format", options->formats,
                     "for other programs: github is printed; gitlab, prometheus, ctrf and trace "
                     "are files in the run folder, whose paths are printed")
          ->delimiter(',')
          ->type_name("NAME[,NAME]");
  app.add_flag("--json", options->json,
               "print summary.json and nothing else; of a watched run, one JSON object of "
               "graphproof-watched-report/1")
      ->excludes(formats);
  return [options](Surroundings& surroundings) { return execute_report(*options, surroundings); };
}

}  // namespace graphproof::cli
