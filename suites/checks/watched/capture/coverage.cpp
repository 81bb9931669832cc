// D18 in a watched run: a graph that is launched holds work.
#include "suites/checks/attempt/concat.h"
#include "suites/checks/watched/job/watched_judgement.h"

namespace graphproof::checks::watched::d18 {

record::CheckResult coverage(WatchedJudgement& judgement, const WatchedJob& job) {
  int launched = 0;
  for (const JobProcess& process : job.processes) {
    if (!process.has_graphs()) continue;
    bool seen = false;
    for (const Executable& one : executables(process)) {
      // Inductor makes one empty graph for its memory pool and never launches it.
      if (one.launches() == 0) continue;
      seen = true;
      if (const std::string unread = one.nodes_unread(); !unread.empty()) {
        judgement.unexercised(concat(process.title(), ": ", unread));
        continue;
      }
      ++launched;
      if (one.graph->total > 0)
        judgement.confirm(process);
      else
        judgement.defect(process,
                         {.what = concat(one.title(), ", is empty and was launched"),
                          .got = concat("0 nodes, ", one.launches(), " launches"),
                          .want = "the work of the step as nodes of the graph",
                          .why = "every replay does nothing: the step's work ran once, while the "
                                 "graph was captured, or on a stream outside the capture",
                          .next = "enqueue the work on the capturing stream, or on streams that "
                                  "wait for it and that it waits for"});
    }
    if (!seen) judgement.excuse(process, "no graph was launched");
  }
  return judgement.result(concat(launched, " graphs with nodes were launched"),
                          "every graph that is launched holds work");
}

}  // namespace graphproof::checks::watched::d18
