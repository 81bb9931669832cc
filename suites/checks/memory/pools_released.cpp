// D32: the graph pools of an arm are released with its graphs.
#include "suites/checks/attempt/concat.h"
#include "suites/checks/memory/quantity.h"

namespace graphproof::checks::d32 {

using record::MemoryLine;

/// The graph pools of arm solo_graph have no bytes after its graphs were destroyed.
record::CheckResult pools_released(Judgement& judgement, const Attempt& attempt) {
  if (!judgement.has_replays()) return judgement.result("", "");
  for (const RankFiles& files : attempt.ranks) {
    const MemoryLine* before = look(judgement, files, "solo_graph", "before");
    const MemoryLine* after = look(judgement, files, "solo_graph", "returned");
    if (!before || !after) {
      judgement.absent<MemoryLine>(
          files, "of arm solo_graph before it was built and after it was dropped");
      continue;
    }
    if (after->pool <= before->pool) {
      judgement.confirm(files.rank);
      continue;
    }
    judgement.defect({.rank = files.rank,
                      .step = std::nullopt,
                      .what = "a graph pool of arm solo_graph outlives its graphs",
                      .got = concat(after->pool, " bytes in graph pools"),
                      .want = concat(before->pool, " at most, as before the arm was built"),
                      .why = "nothing else can use the memory of a pool that is never released"});
  }
  return judgement.result(concat("none left on ", attempt.ranks.size(), " ranks"),
                          "no segment of the arm's pools");
}

}  // namespace graphproof::checks::d32
