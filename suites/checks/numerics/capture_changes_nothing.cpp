// D36: a capture without a replay does not change parameters or generators.
#include <algorithm>

#include "suites/checks/attempt/arms.h"
#include "suites/checks/attempt/capture.h"
#include "suites/checks/attempt/concat.h"
#include "suites/checks/attempt/judgement.h"

namespace graphproof::checks::d36 {

using record::StateLine;

/// The digests of the state before and after every capture of every graph arm are equal.
record::CheckResult capture_changes_nothing(Judgement& judgement, const Attempt& attempt) {
  if (!judgement.has_replays()) return judgement.result("", "");
  for (const RankFiles& files : attempt.ranks) {
    std::vector<const StateLine*> states;
    for (const StateLine& line : judgement.lines<StateLine>(files))
      if (line.what == "capture") states.push_back(&line);
    const auto captures = successful_captures(judgement, files);
    for (const std::string_view arm : graph_arms(attempt)) {
      const auto of_arm = [&](const auto* line) { return line->arm == arm; };
      const auto count = std::ranges::count_if(states, of_arm);
      if (count == 0) judgement.absent<StateLine>(files, concat("of the capture of arm ", arm));
      // A `state` line names no graph, but there must be one for each capture.
      if (count < std::ranges::count_if(captures, of_arm))
        judgement.absent<StateLine>(files, concat("of every capture of arm ", arm));
    }
    for (const StateLine* line : states) {
      const auto& [arm, what, before, after] = *line;
      if (before == after && !before.empty()) {
        judgement.confirm(files.rank);
        continue;
      }
      judgement.defect(
          {.rank = files.rank,
           .step = std::nullopt,
           .what = concat("the capture of arm ", arm, " changed the state"),
           .got = concat("digest ", after.empty() ? "none" : after, " after it"),
           .want = concat(before.empty() ? "a digest" : before, ", as before it"),
           .why = "a capture should run nothing; training would continue from another state"});
    }
  }
  return judgement.result(concat("equal digests on ", attempt.ranks.size(), " ranks"),
                          "the same state before and after");
}

}  // namespace graphproof::checks::d36
