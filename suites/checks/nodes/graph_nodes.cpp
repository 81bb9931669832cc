#include "suites/checks/nodes/graph_nodes.h"

#include "suites/checks/attempt/concat.h"

namespace graphproof::checks {

using record::CaptureLine;

bool nodes_add_up(Judgement& judgement, const RankFiles& files, const CaptureLine& capture) {
  std::int64_t sum = 0;
  for (const auto& [type, count] : capture.census) sum += count;
  if (capture.nodes > 0 && capture.nodes == sum && !capture.signature.empty()) return true;
  judgement.defect({.rank = files.rank,
                    .step = std::nullopt,
                    .what = concat("the census of ", capture_name(capture), " does not add up"),
                    .got = concat(capture.nodes, " nodes, ", sum, " counted by kind, signature `",
                                  capture.signature, "`"),
                    .want = "as many nodes as counted, at least one, and a signature",
                    .why = "a comparison with an empty or miscounted graph proves nothing"});
  return false;
}

std::string nodes_text(const CaptureLine& capture) {
  return concat(capture.nodes, " nodes, signature ", capture.signature);
}

}  // namespace graphproof::checks
