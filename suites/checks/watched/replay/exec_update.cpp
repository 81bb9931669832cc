// D62: updates of executable graphs. A graph whose update was refused still holds the old work.
#include "suites/checks/attempt/concat.h"
#include "suites/checks/watched/job/watched_judgement.h"

namespace graphproof::checks::watched::d62 {

record::CheckResult exec_update(WatchedJudgement& judgement, const WatchedJob& job) {
  int updates = 0;
  for (const JobProcess& process : job.processes) {
    if (!process.has_graphs()) continue;
    std::map<std::int64_t, Executable> by_number;
    bool any = false;
    for (const Executable& one : executables(process)) {
      by_number[one.number()] = one;
      if (one.replays && one.replays->updates + one.replays->node_updates > 0) any = true;
      if (one.replays)
        updates += static_cast<int>(one.replays->updates + one.replays->node_updates);
    }
    for (const auto& update : process.of<record::GraphUpdateLine>()) {
      any = true;
      const auto of = by_number.find(update.executable);
      if (update.result == 0 || of == by_number.end()) continue;
      const Executable& one = of->second;
      // A program that answers a refusal by instantiating anew does not launch the old graph again.
      if (!one.replays || !one.replays->last_s) continue;
      if (!update.seconds) {
        judgement.unexercised(concat(process.title(), ": whether ", one.title(),
                                     " was launched after a refused update was not seen"));
        continue;
      }
      if (*one.replays->last_s <= *update.seconds) continue;
      judgement.defect(
          process,
          {.what = concat(one.title(), ", was launched after an update that the driver refused"),
           .got =
               concat(update.function, " failed with ", update.result_name,
                      update.update_result ? concat(", reason ", *update.update_result) : "",
                      "; the last launch is ", *one.replays->last_s - *update.seconds, " s later"),
           .want = "a new instantiation after a refused update, or no launch",
           .why = "the executable graph still holds the old work and the old addresses",
           .next = "look at the result of the update; destroy the executable graph and instantiate "
                   "the new graph where it is refused"});
    }
    if (any)
      judgement.confirm(process);
    else
      judgement.excuse(process, "no graph was updated");
  }
  return judgement.result(concat(updates, " updates, no graph launched after a refused one"),
                          "no launch of a graph whose update was refused");
}

}  // namespace graphproof::checks::watched::d62
