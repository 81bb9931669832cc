// D35: graphs that share a pool run in the order of their capture, because a graph may reuse memory
// of the outputs of the graphs captured before it.
#include "suites/checks/attempt/arms.h"
#include "suites/checks/attempt/concat.h"
#include "suites/checks/attempt/judgement.h"

namespace graphproof::checks::d35 {

using record::ReplayLine;

/// No graph arm launched graphs of one pool in another order than that of their capture.
record::CheckResult pool_order(Judgement& judgement, const Attempt& attempt) {
  if (!judgement.has_replays()) return judgement.result("", "");
  for (const RankFiles& files : attempt.ranks) {
    for (const char* arm : graph_arms(attempt))
      if (!judgement.first<ReplayLine>(files, arm))
        judgement.absent<ReplayLine>(files, concat("of arm ", arm));
    for (const ReplayLine& line : judgement.lines<ReplayLine>(files)) {
      if (line.out_of_order == 0) {
        judgement.confirm(files.rank);
        continue;
      }
      judgement.defect(
          {.rank = files.rank,
           .step = line.step,
           .what =
               concat("graphs of one pool ran in another order than they were captured, in arm ",
                      line.arm),
           .got = concat(shown(line.out_of_order), " launches out of order"),
           .want = "0",
           .why = "one graph overwrites an output of another that is still needed"});
    }
  }
  return judgement.result(concat("in the order of capture on ", attempt.ranks.size(), " ranks"),
                          "0 launches out of order");
}

}  // namespace graphproof::checks::d35
