// D62: updates of executable graphs. A graph whose update was refused still holds the old work, and
// one whose kernels lose their thread block clusters keeps the clusters.
#include "suites/checks/attempt/concat.h"
#include "suites/checks/watched/job/kernel_name.h"
#include "suites/checks/watched/job/watched_judgement.h"

namespace graphproof::checks::watched::d62 {
namespace {

Finding refused(const Executable& one, const record::GraphUpdateLine& update) {
  return {
      .what = concat(one.title(), ", was launched after an update that the driver refused"),
      .got = concat(update.function, " failed with ", update.result_name,
                    update.update_result ? concat(", reason ", *update.update_result) : "",
                    "; the last launch is ", *one.replays->last_s - *update.seconds, " s later"),
      .want = "a new instantiation after a refused update, or no launch",
      .why = "the executable graph still holds the old work and the old addresses",
      .next =
          "look at the result of the update; destroy the executable graph and instantiate "
          "the new graph where it is refused"};
}

Finding kept_clusters(const Executable& one, const record::GraphUpdateLine& update) {
  return {.what = concat(one.title(),
                         ", was launched after an update that left thread block "
                         "clusters as they were"),
          .got = concat(*update.kept_clusters, " in clusters of the kernels before, the first is ",
                        readable_name(update.kept_kernel.value_or("unnamed"))),
          .want = "the clusters that the new launches ask for: none",
          .why = "the driver accepts such an update, and what the kernels compute may be wrong",
          .next =
              "instantiate the new graph where a kernel has no clusters and the one before had "
              "some, or give every launch a cluster of 1 x 1 x 1; see "
              "docs/findings/updated-graphs-of-other-lengths.md"};
}

}  // namespace

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
      if (of == by_number.end()) continue;
      const bool kept = update.kept_clusters.value_or(0) > 0;
      const bool unread = !update.operands_read && update.clusters.value_or(0) > 0;
      if (update.result == 0 && !kept && !unread) continue;
      const Executable& one = of->second;
      // A program that instantiates anew does not launch the old graph again.
      if (!one.replays || !one.replays->last_s) continue;
      if (update.result == 0 && unread) {
        judgement.unexercised(concat(process.title(), ": ", one.title(),
                                     ", has kernels in thread block clusters, and one of its many "
                                     "updates was not read"));
        continue;
      }
      if (!update.seconds) {
        judgement.unexercised(
            concat(process.title(), ": whether ", one.title(), " was launched after ",
                   kept ? "an update that kept clusters" : "a refused update", " was not seen"));
        continue;
      }
      if (*one.replays->last_s <= *update.seconds) continue;
      judgement.defect(process, kept ? kept_clusters(one, update) : refused(one, update));
    }
    if (any)
      judgement.confirm(process);
    else
      judgement.excuse(process, "no graph was updated");
  }
  return judgement.result(
      concat(updates, " updates, no graph launched after one that did not reach it"),
      "no launch of a graph whose update was refused or kept clusters of the earlier work");
}

}  // namespace graphproof::checks::watched::d62
