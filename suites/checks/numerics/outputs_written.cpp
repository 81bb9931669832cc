// D03: the replay itself wrote the outputs that were compared. A comparison alone cannot show this,
// because it may read a buffer that the eager arm filled.
#include <map>

#include "suites/checks/attempt/arms.h"
#include "suites/checks/attempt/concat.h"
#include "suites/checks/attempt/judgement.h"

namespace graphproof::checks::d03 {
namespace {

using record::PoisonLine;

std::string counts(const PoisonLine& line) {
  return concat(line.compared, " compared of ", line.outputs, " poisoned, ", line.bytes, " bytes");
}

}  // namespace

/// Every watched replay has a `poison` line. Each compared output was poisoned before it, the same
/// outputs in each replay, and no canary word is left afterwards.
record::CheckResult outputs_written(Judgement& judgement, const Attempt& attempt) {
  if (!judgement.has_replays()) return judgement.result("", "");
  for (const RankFiles& files : attempt.ranks) {
    for (const PoisonLine& line : judgement.lines<PoisonLine>(files)) {
      const std::string where = concat(" in arm ", line.arm, " at step ", line.step);
      if (line.canary_words != 0) {
        judgement.defect(
            {.rank = files.rank,
             .step = line.step,
             .what = concat("the replay left poison in its outputs", where),
             .got = concat(line.canary_words, " canary words; ", line.outputs, " of ",
                           line.compared, " compared outputs were poisoned"),
             .want = "0 canary words",
             .why = "the replay did not write what was compared, so equality proves nothing"});
      } else if (line.compared <= 0 || line.compared > line.outputs || line.bytes <= 0) {
        judgement.defect(
            {.rank = files.rank,
             .step = line.step,
             .what = concat("compared outputs were not poisoned", where),
             .got = concat(line.compared, " compared, ", line.outputs, " poisoned, ", line.bytes,
                           " bytes"),
             .want = "every compared output poisoned, at least one",
             .why = "an output that was not poisoned may hold an earlier step's result"});
      } else {
        judgement.confirm(files.rank);
      }
    }
    std::map<std::string_view, const PoisonLine*> first;  // by arm
    for (const auto& [arm, step] : watched_replays(attempt, judgement.expected())) {
      // The first line of the step; those of an evaluation come after it.
      const PoisonLine* line = judgement.first<PoisonLine>(files, arm, step);
      if (!line) {
        judgement.absent<PoisonLine>(files, concat("of arm ", arm), step);
        continue;
      }
      const PoisonLine& other = *first.try_emplace(arm, line).first->second;
      if (counts(*line) == counts(other)) continue;
      judgement.defect(
          {.rank = files.rank,
           .step = step,
           .what = concat("at step ", step, " other outputs of arm ", arm,
                          " were poisoned than before its first replay"),
           .got = counts(*line),
           .want = counts(other),
           .why = "an output that was not poisoned may hold an earlier step's result"});
    }
  }
  return judgement.result(
      concat("no canary left after ", watched_replays(attempt, judgement.expected()).size(),
             " replays on ", attempt.ranks.size(), " ranks"),
      "0 canary words");
}

}  // namespace graphproof::checks::d03
