// The nodes of a captured graph, as its `capture` line has them.
#pragma once

#include <string>

#include "suites/checks/attempt/capture.h"

namespace graphproof::checks {

/// Whether the counts by node type add up to the number of nodes, which is above zero, and the line
/// has a signature. Reports a defect if not.
bool nodes_add_up(Judgement& judgement, const RankFiles& files, const record::CaptureLine& capture);

/// "391 nodes, signature 5566778899aabbcc"
std::string nodes_text(const record::CaptureLine& capture);

}  // namespace graphproof::checks
