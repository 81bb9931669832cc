// D09: every generator from which the step draws was registered with the arm's graphs before their
// capture. PyTorch refuses a draw from an unregistered generator during a capture; older versions
// replayed the same numbers each time.
#include <map>

#include "suites/checks/attempt/arms.h"
#include "suites/checks/attempt/concat.h"
#include "suites/checks/attempt/judgement.h"

namespace graphproof::checks::d09 {

using record::CaptureLine;

/// Every graph arm of a case with dropout registered all generators from which the step draws.
/// Failed captures are judged, too, because an unregistered generator makes the capture fail.
record::CheckResult registered_generators(Judgement& judgement, const Attempt& attempt) {
  if (!judgement.has_replays()) return judgement.result("", "");
  for (const RankFiles& files : attempt.ranks) {
    // By arm: the count grows with each of its captures.
    std::map<std::string, const CaptureLine*> last;
    for (const CaptureLine& capture : judgement.lines<CaptureLine>(files))
      last[capture.arm] = &capture;
    for (const auto& [arm, capture] : last) {
      if (capture->generators && capture->generators_wanted > 0 &&
          capture->generators == capture->generators_wanted) {
        judgement.confirm(files.rank);
        continue;
      }
      judgement.defect(
          {.rank = files.rank,
           .step = std::nullopt,
           .what = concat("a generator was not registered with the graphs of arm ", arm),
           .got = concat(shown(capture->generators), " registered"),
           .want = concat(shown(capture->generators_wanted), ", all that the step draws from"),
           .why = "a replay advances registered generators only; any other repeats its numbers or "
                  "is refused"});
    }
    for (const char* arm : graph_arms(attempt))
      if (!last.contains(arm)) judgement.absent<CaptureLine>(files, concat("of arm ", arm));
  }
  return judgement.result(concat("all of them in every arm on ", attempt.ranks.size(), " ranks"),
                          "every generator of the step");
}

}  // namespace graphproof::checks::d09
