// What a run prints: the live progress line, the closing table, the kill matrix. Pure functions to
// text; who prints it where is the command line's business. Text that came from ranks passes
// record::printable() first.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reports/outcome/run_result.h"
#include "reports/record/run/faults.h"

namespace graphproof::reports {

struct TerminalStyle {
  bool colour = false;
  int columns = 100;  // width that lines are cut to
};

struct Progress {
  int done = 0, planned = 0;  // cases; skipped ones count as done
  int running = 0;
  int failed = 0;  // verdicts with exit code 1
  double elapsed_seconds = 0;
  /// Sums of the plan's expected_seconds.
  double expected_done_seconds = 0, expected_left_seconds = 0;
  std::string now;  // name and phase of a running case; may be empty
};

/// Seconds until the run ends, from how fast the done cases went against what the plan expected;
/// nothing before the first case is done.
std::optional<double> remaining_seconds(const Progress& progress);

/// One line without a newline, exactly fitting: "[ 12/48] 1 failed  2 running  0:14 elapsed  0:42
/// left  NAME".
std::string progress_line(const Progress& progress, const TerminalStyle& style);

/// "0:07", "12:30", "3:05:00".
std::string clock_text(double seconds);

/// Failures first, each with what / got / want / why / next and its repro command; then counts,
/// coverage and the closing line. Ends with a newline.
std::string closing_table(const RunResult& run, const TerminalStyle& style);

/// One row per fault. Empty text if there are none.
std::string kill_matrix(const std::vector<record::FaultResult>& faults, const TerminalStyle& style);

}  // namespace graphproof::reports
