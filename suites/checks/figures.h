// Numbers of an attempt worth keeping in its record, with the unit last: what the checks have no opinion on.
#pragma once

#include <map>
#include <string>

#include "suites/checks/attempt.h"

namespace graphproof::checks {

/// eager_ms and replay_ms: a step of the free-running arms, where nothing is watched (of a case without graphs: the
/// median step of arm eager_a); of the slowest rank. capture_ms, graph_nodes, pool_bytes: largest over ranks and
/// graphs. What the evidence does not hold is left out.
std::map<std::string, double> figures(const Attempt& attempt);

}  // namespace graphproof::checks
