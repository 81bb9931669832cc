// D03: the outputs of every graph that a step launches are poisoned before and inspected
// afterwards, so that no graph can leave an earlier step's outputs in place.
#include "suites/checks/attempt/arms.h"
#include "suites/checks/attempt/concat.h"
#include "suites/checks/attempt/judgement.h"

namespace graphproof::checks::d03 {

/// In each watched replay the engine announced every launch that the device counted, and the
/// outputs of each were inspected afterwards.
record::CheckResult launches_watched(Judgement& judgement, const Attempt& attempt) {
  if (!judgement.has_replays()) return judgement.result("", "");
  for (const RankFiles& files : attempt.ranks) {
    for (const record::PoisonLine& line : judgement.lines<record::PoisonLine>(files)) {
      // D43 judges whether there are fewer launches than were announced.
      if (line.launches && line.announced > 0 && *line.launches <= *line.announced &&
          line.inspected == line.announced) {
        judgement.confirm(files.rank);
        continue;
      }
      judgement.defect(
          {.rank = files.rank,
           .step = line.step,
           .what =
               concat("graphs were launched uninspected in arm ", line.arm, " at step ", line.step),
           .got = concat(shown(line.launches), " launches, ", shown(line.announced), " announced, ",
                         shown(line.inspected), " inspected afterwards"),
           .want = "every launch announced before, and its outputs inspected afterwards",
           .why = "the outputs of such a graph were neither poisoned nor inspected, so they may be "
                  "an earlier step's"});
    }
    for (const auto& [arm, step] : watched_replays(attempt, judgement.expected()))
      if (!judgement.first<record::PoisonLine>(files, arm, step))
        judgement.absent<record::PoisonLine>(files, concat("of arm ", arm), step);
  }
  return judgement.result(
      concat("every launch of ", watched_replays(attempt, judgement.expected()).size(),
             " replays on ", attempt.ranks.size(), " ranks"),
      "every launch inspected");
}

}  // namespace graphproof::checks::d03
