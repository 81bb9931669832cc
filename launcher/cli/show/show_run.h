// What a run prints while it goes and at its end.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>

#include "launcher/cli/verb.h"
#include "launcher/run/run.h"
#include "reports/outcome/run_result.h"
#include "reports/print/terminal.h"

namespace graphproof::cli {

/// On a terminal one line that is written over; elsewhere one line per finished case. With --json
/// to the error stream, so that standard output holds the summary alone.
class ProgressPrinter {
 public:
  ProgressPrinter(Surroundings& surroundings, bool json);

  void begin(const launcher::RunSetup& setup);
  launcher::RunListener listener();
  /// Clears the live line.
  void end();

 private:
  void finished(const record::Record& record, const reports::Progress& progress);
  void live(const reports::Progress& progress);

  std::ostream& out_;
  bool live_;
  reports::TerminalStyle style_;
  std::size_t shown_columns_ = 0;
};

/// The installed stack in a line.
std::string stack_line(const record::Stack& stack);

reports::TerminalStyle style_of(const Surroundings& surroundings);

/// The kill matrix if faults were planted, the closing table, and where the rest lies; or
/// summary.json.
void show_result(const reports::RunResult& result, const std::filesystem::path& folder,
                 Surroundings& surroundings, bool json);

using RunLoop = reports::RunResult (*)(const launcher::RunSetup&, const launcher::RunListener&);
/// Runs (or resumes) with the progress on the screen, then shows the result; the run's exit code.
record::ExitCode run_and_show(const launcher::RunSetup& setup, Surroundings& surroundings,
                              bool json, RunLoop loop = launcher::run);

}  // namespace graphproof::cli
