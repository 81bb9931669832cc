// Numbers of an attempt that are kept in its record. No check judges them. A name ends with its
// unit.
#pragma once

#include <map>
#include <string>

#include "suites/checks/attempt/attempt.h"

namespace graphproof::checks {

/// The figures of an attempt by name. A figure that the evidence lacks is left out.
///
/// Medians over the timed steps of a solo arm (see first_timed_step()), of the slowest rank:
///   - eager_step_ms, graph_step_ms: a step until host and device have ended it.
///   - eager_launch_ms, graph_launch_ms: a step until the host has enqueued it.
///   - eager_busy_share: the part of an eager step during which the device works, at most 1.
///   - graph_busy_ms: how long the device works in a step with graphs.
/// Of the solo graph arm, the largest over ranks:
///   - capture_seconds, graphs: time and number of all its captures.
///   - extra_memory_bytes: what the allocator reserves for it beyond the solo eager arm.
/// Largest over ranks, arms and graphs:
///   - capture_ms, graph_nodes, pool_bytes: of one capture.
/// A step of the slowest rank:
///   - eager_ms, replay_ms: as eager_step_ms and graph_step_ms. In evidence below revision 8 and
///     for model collective, replay_ms is from arm free_graph, and eager_ms from free_eager where
///     the evidence has it (below revision 4) or, without graphs, the median step of eager_a.
std::map<std::string, double> figures(const Attempt& attempt);

}  // namespace graphproof::checks
