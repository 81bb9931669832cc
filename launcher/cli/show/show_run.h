// Prints the progress of a run and its result.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>

#include "launcher/cli/verb.h"
#include "launcher/run/run.h"
#include "reports/outcome/run_result.h"
#include "reports/print/terminal.h"

namespace graphproof::cli {

/// Prints progress: on a terminal a block of lines that is written over, and above it a line for
/// each failure as it comes; otherwise one line for each finished case. With --json it goes to
/// standard error, so that standard output has only the summary.
class ProgressPrinter {
 public:
  ProgressPrinter(Surroundings& surroundings, bool json);

  void begin(const launcher::RunSetup& setup);
  launcher::RunListener listener();
  /// Clears the live block.
  void end();

 private:
  void finished(const record::Record& record, const reports::Progress& progress);
  void live(const reports::Progress& progress);

  std::ostream& out_;
  bool live_;
  reports::TerminalStyle style_;
  std::size_t shown_lines_ = 0;  // of the live block, the last of which has the cursor
};

/// The stack in one line.
std::string stack_line(const record::Stack& stack);
/// A line with the subjects other than reference that this stack has, and why it lacks the others.
/// Empty where nothing was asked for them.
std::string subjects_line(const record::Stack& stack);

reports::TerminalStyle style_of(const Surroundings& surroundings);

/// Prints the table of planted faults and the hazards, if there are any, and the closing table;
/// with `json` the summary instead.
void show_result(const reports::RunResult& result, const std::filesystem::path& folder,
                 Surroundings& surroundings, bool json);

using RunLoop = reports::RunResult (*)(const launcher::RunSetup&, const launcher::RunListener&);
/// Runs or resumes with progress on the screen, then shows the result. Returns the exit code of the
/// run.
record::ExitCode run_and_show(const launcher::RunSetup& setup, Surroundings& surroundings,
                              bool json, RunLoop loop = launcher::run);

}  // namespace graphproof::cli
