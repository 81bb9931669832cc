// D09: every generator that the step draws from was registered with the arm's graphs before they
// captured. One that was not is refused by today's PyTorch during the capture; an older one
// replayed the same numbers for ever.
#include <map>

#include "suites/checks/attempt/arms.h"
#include "suites/checks/attempt/concat.h"
#include "suites/checks/attempt/detectors.h"
#include "suites/checks/attempt/judgement.h"

namespace graphproof::checks {

record::CheckResult registered_generators(const Attempt& attempt) {
  Judgement judgement("D09.registered_generators", attempt);
  if (!judgement.for_training_cases() || !judgement.for_graph_cases())
    return judgement.result("", "");
  if (!attempt.axes.flag("dropout"))
    judgement.not_applicable("dropout is off, so no step draws random numbers");
  if (judgement.settled()) return judgement.result("", "");
  for (const RankFiles& files : attempt.ranks) {
    std::map<std::string, const Line*> last;  // by arm: the count grows with each of its captures
    for (const Line* capture : files.find("capture")) last[text(*capture, "arm")] = capture;
    for (const auto& [arm, capture] : last) {
      const auto registered = integer(*capture, "generators"),
                 wanted = integer(*capture, "generators_wanted");
      if (registered && wanted && *wanted > 0 && registered == wanted) {
        judgement.saw(files.rank);
        continue;
      }
      judgement.defect(
          {.rank = files.rank,
           .step = integer(*capture, "step"),
           .what = concat("a generator was not registered with the graphs of arm ", arm),
           .got = concat(field(*capture, "generators").dump(), " registered"),
           .want = concat(field(*capture, "generators_wanted").dump(),
                          ", all that the step draws from"),
           .why = "a replay advances only what was registered; anything else repeats "
                  "its numbers or is refused"});
    }
    for (const char* arm : graph_arms(attempt))
      if (!last.contains(arm)) judgement.absent(files, concat("`capture` line of arm ", arm));
  }
  return judgement.result(concat("all of them in every arm on ", attempt.ranks.size(), " ranks"),
                          "every generator of the step");
}

}  // namespace graphproof::checks
