// D56: copies and fills of a graph that nothing orders with the other nodes that use what they
// write, as far as a GPU's graph tells; the simulated device follows all work instead.
#include "suites/checks/nodes/host_work.h"

namespace graphproof::checks::d56 {

/// A path orders each copy and fill of a graph with every other node of which it is known that it
/// uses the same memory.
record::CheckResult unordered_nodes(Judgement& judgement, const Attempt& attempt) {
  if (attempt.context.device == "sim")
    judgement.not_applicable("on the simulated device the races of all work are judged");
  if (judgement.settled()) return judgement.result("", "");
  std::int64_t graphs = 0;
  for_each_captured_graph(
      judgement, attempt, [&](const RankFiles& files, const record::HostWorkLine& line) {
        ++graphs;
        if (line.unordered.empty()) return judgement.confirm(files.rank);
        judgement.defect(
            {.rank = files.rank,
             .step = std::nullopt,
             .what = concat("nothing orders two nodes of ", title_of(line),
                            " that use the same memory"),
             .got = concat(line.unordered.size(), ", the first one: ", line.unordered.front()),
             .want = "a path from one to the other",
             .why = "replays may run them in either order, so the result is a matter of "
                    "luck"});
      });
  return judgement.result(concat("every copy and fill in ", graphs, " graphs"),
                          "an order with all other uses of what it writes");
}

}  // namespace graphproof::checks::d56
