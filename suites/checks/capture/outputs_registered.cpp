// D07: the registered addresses, which D07.static_addresses compares, include those of every output
// of a step.
#include "suites/checks/attempt/arms.h"
#include "suites/checks/attempt/concat.h"
#include "suites/checks/attempt/judgement.h"

namespace graphproof::checks::d07 {

/// In each watched replay the addresses of all outputs of the step (losses, gradients, parameters,
/// optimizer state) are registered.
record::CheckResult outputs_registered(Judgement& judgement, const Attempt& attempt) {
  if (!judgement.has_replays()) return judgement.result("", "");
  for (const RankFiles& files : attempt.ranks) {
    for (const auto& [arm, step] : watched_replays(attempt, judgement.expected()))
      if (!judgement.first<record::PoisonLine>(files, arm, step))
        judgement.absent<record::PoisonLine>(files, concat("of arm ", arm), step);
    for (const record::PoisonLine& line : judgement.lines<record::PoisonLine>(files)) {
      if (line.unregistered && line.unregistered->empty()) {
        judgement.confirm(files.rank);
        continue;
      }
      judgement.defect(
          {.rank = files.rank,
           .step = line.step,
           .what =
               concat("the address of an output of a step of arm ", line.arm, " is not registered"),
           .got = concat("unregistered: ", shown(line.unregistered)),
           .want = "none: losses, gradients, parameters and optimizer state all registered",
           .why = "no check notices when an unregistered address moves, and the replay reads or "
                  "writes the old one"});
    }
  }
  return judgement.result(
      concat("every output of ", watched_replays(attempt, judgement.expected()).size(),
             " replays on ", attempt.ranks.size(), " ranks"),
      "every address registered");
}

}  // namespace graphproof::checks::d07
