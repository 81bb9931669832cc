// The nodes of a captured graph, as its `capture` line counts them.
#pragma once

#include <string>

#include "suites/checks/attempt/capture.h"

namespace graphproof::checks {

/// Whether the nodes by their type add up to the whole and there is something to compare. Otherwise
/// it is a defect.
bool nodes_add_up(Judgement& judgement, const RankFiles& files, const record::CaptureLine& capture);

/// "391 nodes, signature 5566778899aabbcc"
std::string nodes_text(const record::CaptureLine& capture);

}  // namespace graphproof::checks
