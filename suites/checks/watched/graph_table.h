// The table of graphs of a watched run, and its figures. No check judges them.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "reports/record/watched/watched_checks.h"
#include "suites/checks/watched/job/watched_job.h"

namespace graphproof::checks::watched {

/// One row for each process and executable graph, in the order of processes and numbers. Of a
/// process with very many graphs, those that launched most kernels; `notes` then says how many are
/// left out.
std::vector<record::GraphRow> graph_table(const WatchedJob& job, std::vector<std::string>& notes);

/// Numbers of the run by name. A figure that the evidence lacks is left out.
///   - graph_share: kernels that were launched in graphs, of all kernels that were launched.
///   - graphs, graph_launches, eager_kernels, steps: sums over processes; of steps the most.
///   - live_graphs: most executable graphs alive at once in a process.
///   - instantiation_bytes: device memory that instantiations took; the most of a process.
///   - steady_share, replays_a_step and the least of each: see job/steady_share.h.
///   - capture_ms, probe_start_ms: the longest capture, and the longest start of a probe.
std::map<std::string, double> watched_figures(const WatchedJob& job);

}  // namespace graphproof::checks::watched
