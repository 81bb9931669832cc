// How much of its work a run has in graphs once it replays them: the figures by which one run is
// compared with an earlier one, whatever their lengths, since warm-up does not count.
#pragma once

#include <map>
#include <string>

#include "suites/checks/watched/job/watched_job.h"

namespace graphproof::checks::watched {

/// What the evidence lacks is left out.
///   - steady_share: kernels that were launched in graphs, of all kernels since the first launch of
///     a graph, over all processes with graphs; least_steady_share: the smallest of a process.
///   - replays_a_step: launches of graphs in a training step since the first launch, over all
///     processes that count steps; least_replays_a_step: the smallest of a process.
std::map<std::string, double> steady_figures(const WatchedJob& job);

}  // namespace graphproof::checks::watched
