// D05: the memory outside graph pools that a graph reads and writes still has the owner that it
// had at capture.
#include "suites/checks/attempt/concat.h"
#include "suites/checks/attempt/judgement.h"

namespace graphproof::checks::d05 {

using record::OperandsLine;

/// Every replayed step of lockstep_graph has a line about the memory whose addresses are in the
/// parameters of the graph's nodes: blocks were inspected, and none was freed after the capture.
record::CheckResult operands_alive(Judgement& judgement, const Attempt& attempt) {
  if (!judgement.has_replays()) return judgement.result("", "");
  for (const RankFiles& files : attempt.ranks) {
    for (const std::int64_t step : judgement.expected().replayed_steps())
      if (!judgement.first<OperandsLine>(files, "lockstep_graph", step))
        judgement.absent<OperandsLine>(files, "of arm lockstep_graph", step);
    for (const OperandsLine& line : judgement.lines<OperandsLine>(files)) {
      if (line.freed.empty() && line.blocks > 0) {
        judgement.confirm(files.rank);
        continue;
      }
      judgement.defect(
          {.rank = files.rank,
           .step = line.step,
           .what = concat("a graph of arm ", line.arm,
                          " is about to use memory that was freed after its capture"),
           .got = line.freed.empty()
                      ? concat(line.blocks, " blocks inspected, freed: []")
                      : concat(line.freed.front(), ", and ", line.freed.size() - 1, " more"),
           .want = "at least one block, and each still with its owner of the capture",
           .why = "the replay reads or overwrites the memory's new content"});
    }
  }
  return judgement.result(concat("alive before ", judgement.expected().replayed_steps().size(),
                                 " replayed steps on ", attempt.ranks.size(), " ranks"),
                          "all memory of a graph alive");
}

}  // namespace graphproof::checks::d05
