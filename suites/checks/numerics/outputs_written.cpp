// D03: the replay itself wrote what was compared, and every graph that it launched was watched. A
// comparison alone can't tell: it may read a buffer that the eager arm filled.
#include <map>

#include "suites/checks/attempt/arms.h"
#include "suites/checks/attempt/concat.h"
#include "suites/checks/attempt/detectors.h"
#include "suites/checks/attempt/judgement.h"

namespace graphproof::checks {
namespace {

std::string counts(const Line& line) {
  return concat(field(line, "compared").dump(), " compared of ", field(line, "outputs").dump(),
                " poisoned, ", field(line, "bytes").dump(), " bytes");
}

}  // namespace

record::CheckResult outputs_written(const Attempt& attempt) {
  Judgement judgement("D03.outputs_written", attempt);
  if (!judgement.for_graph_cases()) return judgement.result("", "");
  for (const RankFiles& files : attempt.ranks) {
    for (const Line* line : files.find("poison")) {
      const auto step = integer(*line, "step");
      const std::string arm = text(*line, "arm");
      const std::int64_t outputs = integer(*line, "outputs").value_or(0),
                         compared = integer(*line, "compared").value_or(0);
      const std::int64_t bytes = integer(*line, "bytes").value_or(0);
      const auto canary_words = integer(*line, "canary_words");
      const std::string where = concat(" in arm ", arm, " at step ", step.value_or(-1));
      if (canary_words != 0) {
        judgement.defect(
            {.rank = files.rank,
             .step = step,
             .what = concat("the replay left poison in its outputs", where),
             .got = canary_words ? concat(*canary_words, " canary words; ", outputs, " of ",
                                          compared, " compared outputs were poisoned")
                                 : "no count of canary words",
             .want = "0 canary words",
             .why = "the replay did not write what was compared, so equality says nothing"});
      } else if (compared <= 0 || compared > outputs || bytes <= 0) {
        judgement.defect(
            {.rank = files.rank,
             .step = step,
             .what = concat("compared outputs were not poisoned", where),
             .got = concat(compared, " compared, ", outputs, " poisoned, ", bytes, " bytes"),
             .want = "every compared output poisoned, at least one",
             .why = "an output that was not poisoned may hold an earlier step's result"});
      } else {
        judgement.saw(files.rank);
      }
    }
    std::map<std::string_view, const Line*> first;  // by arm
    for (const auto& [arm, step] : watched_replays(attempt, judgement.expected())) {
      const Line* line =
          files.first("poison", arm, step);  // behind it in file order are those of evaluation
      if (!line) {
        judgement.absent(files, concat("`poison` line of arm ", arm), step);
        continue;
      }
      const Line& other = *first.try_emplace(arm, line).first->second;
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
    for (const Line* line : files.find("poison")) {
      const auto launches = integer(*line, "launches"), watched = integer(*line, "watched"),
                 looked_at = integer(*line, "looked_at");
      // Fewer launches than were announced are D43's.
      if (launches && watched > 0 && *launches <= *watched && looked_at == watched) {
        judgement.saw(files.rank);
        continue;
      }
      judgement.defect(
          {.rank = files.rank,
           .step = integer(*line, "step"),
           .what = concat("graphs were launched unwatched in arm ", text(*line, "arm"), " at step ",
                          field(*line, "step").dump()),
           .got = concat(field(*line, "launches").dump(), " launches, ",
                         field(*line, "watched").dump(), " announced, ",
                         field(*line, "looked_at").dump(), " looked at afterwards"),
           .want = "every launch announced before, and its outputs looked at afterwards",
           .why = "what such a graph wrote was neither poisoned before nor looked at, so it may be "
                  "an earlier step's"});
    }
    for (const auto& [arm, step] : watched_replays(attempt, judgement.expected()))
      if (!files.first("poison", arm, step))
        judgement.absent(files, concat("`poison` line of arm ", arm), step);
  }
  return judgement.result(
      concat("every launch of ", watched_replays(attempt, judgement.expected()).size(),
             " replays on ", attempt.ranks.size(), " ranks"),
      "every launch watched");
}

}  // namespace graphproof::checks
