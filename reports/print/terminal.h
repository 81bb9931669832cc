// The text that a run prints: the live block, the closing table, the table of planted faults.
// The functions are pure; the command line decides where their text goes. Text that ranks wrote
// passes record::printable() first.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reports/outcome/run_result.h"
#include "reports/print/overview.h"
#include "reports/print/text_table.h"
#include "reports/record/run/faults.h"

namespace graphproof::reports {

/// How far a run is.
struct Progress {
  int done = 0, planned = 0;  // cases; skipped ones count as done
  int running = 0;
  int failed = 0;  // verdicts with exit code 1
  double elapsed_seconds = 0;
  /// Sums of expected_seconds in the plan, over the finished and the other cases.
  double expected_done_seconds = 0, expected_left_seconds = 0;
  std::vector<std::string> now;  // name and phase of each running case
};

/// Seconds until the run ends, extrapolated from how long the finished cases took compared with the
/// plan's expectation. Absent before the first case is finished.
std::optional<double> remaining_seconds(const Progress& progress);

/// What a terminal shows while a run goes on, without newlines: a line "[####......]  12/48  1
/// failed 0:14 elapsed  0:42 left", then a line for each running case, six at most. Each is cut to
/// the width of `style`, so that none wraps.
std::vector<std::string> live_block(const Progress& progress, const TerminalStyle& style);

/// Minutes and seconds, with hours from one hour on: "0:07", "12:30", "3:05:00".
std::string clock_text(double seconds);

/// What the page's first screen says, in the order in which a terminal is read: the groups of
/// failures, each with what its cases have in common, the evidence of the first one, what cures it
/// and the command that runs it again; then the verdict in words, the counts, what is new, the
/// coverage and the closing line. Ends with a newline.
std::string closing_table(const RunResult& run, const Overview& words, const TerminalStyle& style);

/// One row for each planted fault. Empty if there are none.
std::string kill_matrix(const std::vector<record::FaultResult>& faults, const TerminalStyle& style);

}  // namespace graphproof::reports
