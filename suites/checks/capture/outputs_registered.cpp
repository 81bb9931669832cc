// D07: the addresses that are watched include those of everything that a step hands out.
#include "suites/checks/attempt/arms.h"
#include "suites/checks/attempt/concat.h"
#include "suites/checks/attempt/judgement.h"

namespace graphproof::checks::d07 {

/// In each watched replay the addresses of everything that the step hands out (losses, gradients,
/// parameters, optimizer state) are among the registered ones.
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
               concat("nobody watched the address of what a step of arm ", line.arm, " hands out"),
           .got = concat("unregistered: ", shown(line.unregistered)),
           .want = "none: losses, gradients, parameters and optimizer state all registered",
           .why = "an address that nobody registered may move unseen, and the replay reads or "
                  "writes the old one"});
    }
  }
  return judgement.result(
      concat("everything handed out in ", watched_replays(attempt, judgement.expected()).size(),
             " replays on ", attempt.ranks.size(), " ranks"),
      "every address registered");
}

}  // namespace graphproof::checks::d07
