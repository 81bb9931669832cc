// D03: the replay itself wrote what was compared, and every graph that it launched was watched. A
// comparison alone can't tell: it may read a buffer that the eager arm filled.
#include <map>

#include "suites/checks/attempt/arms.h"
#include "suites/checks/attempt/concat.h"
#include "suites/checks/attempt/detectors.h"
#include "suites/checks/attempt/judgement.h"

namespace graphproof::checks {
namespace {

using record::PoisonLine;

std::string counts(const PoisonLine& line) {
  return concat(line.compared, " compared of ", line.outputs, " poisoned, ", line.bytes, " bytes");
}

}  // namespace

record::CheckResult outputs_written(const Attempt& attempt) {
  Judgement judgement("D03.outputs_written", attempt);
  if (!judgement.for_graph_cases()) return judgement.result("", "");
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
             .why = "the replay did not write what was compared, so equality says nothing"});
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
        judgement.saw(files.rank);
      }
    }
    std::map<std::string_view, const PoisonLine*> first;  // by arm
    for (const auto& [arm, step] : watched_replays(attempt, judgement.expected())) {
      // In file order the lines of evaluation come after it.
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
           .what = concat("other outputs of arm ", arm, " were poisoned at step ", step,
                          " than before its first replay"),
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

record::CheckResult launches_watched(const Attempt& attempt) {
  Judgement judgement("D03.launches_watched", attempt);
  if (!judgement.for_training_cases() || !judgement.for_graph_cases())
    return judgement.result("", "");
  for (const RankFiles& files : attempt.ranks) {
    for (const PoisonLine& line : judgement.lines<PoisonLine>(files)) {
      // Fewer launches than were announced are D43's.
      if (line.launches && line.announced > 0 && *line.launches <= *line.announced &&
          line.inspected == line.announced) {
        judgement.saw(files.rank);
        continue;
      }
      judgement.defect(
          {.rank = files.rank,
           .step = line.step,
           .what =
               concat("graphs were launched unwatched in arm ", line.arm, " at step ", line.step),
           .got = concat(shown(line.launches), " launches, ", shown(line.announced), " announced, ",
                         shown(line.inspected), " looked at afterwards"),
           .want = "every launch announced before, and its outputs looked at afterwards",
           .why = "what such a graph wrote was neither poisoned before nor looked at, so it may be "
                  "an earlier step's"});
    }
    for (const auto& [arm, step] : watched_replays(attempt, judgement.expected()))
      if (!judgement.first<PoisonLine>(files, arm, step))
        judgement.absent<PoisonLine>(files, concat("of arm ", arm), step);
  }
  return judgement.result(
      concat("every launch of ", watched_replays(attempt, judgement.expected()).size(),
             " replays on ", attempt.ranks.size(), " ranks"),
      "every launch watched");
}

}  // namespace graphproof::checks
