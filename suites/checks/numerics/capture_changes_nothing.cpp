// D36: a capture without replay leaves parameters and generators as it found them.
#include <algorithm>

#include "suites/checks/attempt/arms.h"
#include "suites/checks/attempt/capture.h"
#include "suites/checks/attempt/concat.h"
#include "suites/checks/attempt/detectors.h"
#include "suites/checks/attempt/judgement.h"

namespace graphproof::checks {

record::CheckResult capture_changes_nothing(const Attempt& attempt) {
  Judgement judgement("D36.capture_changes_nothing", attempt);
  if (!judgement.for_graph_cases()) return judgement.result("", "");
  for (const RankFiles& files : attempt.ranks) {
    std::vector<const Line*> states = files.find("state");
    std::erase_if(states, [](const Line* line) { return text(*line, "what") != "capture"; });
    const std::vector<const Line*> captures = successful_captures(files);
    for (const char* arm : graph_arms(attempt)) {
      const auto looks =
          std::ranges::count_if(states, [&](const Line* line) { return is(*line, "arm", arm); });
      if (looks == 0) judgement.absent(files, concat("`state` line of the capture of arm ", arm));
      // They name no graph, but there is one for each.
      if (looks <
          std::ranges::count_if(captures, [&](const Line* line) { return is(*line, "arm", arm); }))
        judgement.absent(files, concat("`state` line of every capture of arm ", arm));
    }
    for (const Line* line : states) {
      const std::string before = text(*line, "before"), after = text(*line, "after");
      if (before == after && !before.empty()) {
        judgement.saw(files.rank);
        continue;
      }
      judgement.defect(
          {.rank = files.rank,
           .step = integer(*line, "step"),
           .what = concat("the capture of arm ", text(*line, "arm"), " changed the state"),
           .got = concat("digest ", after.empty() ? "none" : after, " after it"),
           .want = concat(before.empty() ? "a digest" : before, ", as before it"),
           .why =
               "a capture records and runs nothing, so training would go on from another state"});
    }
  }
  return judgement.result(concat("equal digests on ", attempt.ranks.size(), " ranks"),
                          "the same state before and after");
}

}  // namespace graphproof::checks
