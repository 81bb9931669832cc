// What machines read of a run: CI systems, monitoring, a trace viewer. Each format is one function
// from a result to text, and one row of a table. Text of ranks and libraries stays text. A format
// with an entry for each case is given out piece by piece, so that its text is never in memory as a
// whole.
#pragma once

#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "reports/outcome/run_result.h"

namespace graphproof::reports {

/// Takes the next piece of a text.
using Put = std::function<void(std::string_view)>;

/// Lines that GitHub turns into annotations of a workflow run
/// (docs.github.com: workflow commands for GitHub Actions). An error for each case that needs
/// attention, a notice with the result. GitHub shows ten of each kind, so the worst come first and
/// no more are written.
std::string github_annotations(const RunResult& run);

/// A report of GitLab's code quality (docs.gitlab.com: code quality, custom tool): an entry for
/// each failure. It lies in the matrix file of the run, because GitLab wants a place in the source.
void gitlab_code_quality(const RunResult& run, const Put& put);

/// The text format of Prometheus, for the textfile collector of node_exporter: gauges of this run
/// and no time stamps, which the collector refuses.
std::string prometheus(const RunResult& run);

/// CTRF, the common test report format (ctrf.io).
void ctrf(const RunResult& run, const Put& put);

/// The run as a trace in Chrome's JSON format, which Perfetto opens: a process for each batch, a
/// thread for each rank, a slice for each case with its phases. `folder` is the run folder, whose
/// evidence has the times. Ranks of one host share a clock; each batch starts at its own time.
void chrome_trace(const RunResult& run, const std::filesystem::path& folder, const Put& put);

/// A format of `graphproof report --format`. junit.xml and summary.md are written for every run and
/// are none of these.
struct Format {
  std::string_view name;
  std::string_view file;  // in the run folder; empty for what is printed
  void (*put)(const RunResult&, const std::filesystem::path& folder, const Put&);
};
std::span<const Format> formats();

}  // namespace graphproof::reports
