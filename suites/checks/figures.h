// Numbers of an attempt worth keeping in its record, with the unit last: what the checks have no
// opinion on.
#pragma once

#include <map>
#include <string>

#include "suites/checks/attempt/attempt.h"

namespace graphproof::checks {

/// eager_ms and replay_ms: a step of the slowest rank, eager_step_ms and graph_step_ms. Before
/// revision 8, and of collectives alone: replay_ms of free_graph, and eager_ms of free_eager where
/// the evidence has it (before revision 4), of a case without graphs the median step of arm
/// eager_a. capture_ms, graph_nodes, pool_bytes: largest over ranks and graphs. Of the solo arms,
/// medians of the steps that are timed (first_timed_step()), of the slowest rank: eager_step_ms,
/// graph_step_ms (host and device), eager_launch_ms, graph_launch_ms (until the host has enqueued
/// the step); eager_busy_share, the device's own time of an eager step over eager_step_ms;
/// capture_seconds and graphs, of all captures of one arm; extra_memory_bytes, what the allocator
/// reserves for the graph arm beyond the eager one. What the evidence does not hold is left out.
std::map<std::string, double> figures(const Attempt& attempt);

}  // namespace graphproof::checks
