// A watched run as text: what the terminal shows at its end, and report.md. The page is
// watched_page.h. The functions are pure; the command line decides where their text goes.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "reports/outcome/watched_outcome.h"
#include "reports/print/text_table.h"
#include "reports/record/watched/watched_checks.h"
#include "reports/record/watched/watched_run.h"

namespace graphproof::reports {

/// Everything that the reports of a watched run show.
struct WatchedReport {
  record::WatchedRun run;
  record::WatchedChecks checks;  ///< empty if the judge left none
  WatchedOutcome outcome;
  int processes = 0;  ///< that wrote evidence
  std::filesystem::path folder;
};

/// The failing checks, each with what / got / want / why / next; the result of every check, the
/// table of graphs, what was not seen, and the closing lines. Ends with a newline.
std::string watched_text(const WatchedReport& report, const TerminalStyle& style);

/// report.md: the same as a page for a pull request or the summary of a CI job.
std::string watched_markdown(const WatchedReport& report);

/// {"schema": "graphproof-watched-report/1", "verdict", "reason", "exit_code", "processes",
/// "folder", "run": watched.json, "checks": checks.json}, and where a part of the job left no
/// evidence "without_evidence": {"what", "got", "want", "why", "next"}
record::Json watched_json(const WatchedReport& report);

/// A row of the table of graphs as text, in the order of graph_columns(); "-" for what was not
/// seen.
std::vector<std::string> graph_cells(const record::GraphRow& graph);
const std::vector<std::string>& graph_columns();

/// "2.0 x scale, 1.0 x cuStreamSynchronize": what its thread does outside graphs before a replay.
/// Empty where nothing was seen.
std::string between_text(const record::GraphRow& graph);

/// Sentences about what was not seen: of the launcher, of processes without evidence, of the judge.
std::vector<std::string> unseen_notes(const WatchedReport& report);

/// "python3 'my program.py'": as a shell would take it.
std::string command_text(const std::vector<std::string>& command);

}  // namespace graphproof::reports
