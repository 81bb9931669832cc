// D29 in a watched run: graphs are gone before what they use. A communicator waits in its
// destruction for all graphs with its kernels (NCCL src/init.cc, commDestroySync).
#include <algorithm>

#include "suites/checks/attempt/concat.h"
#include "suites/checks/watched/job/watched_judgement.h"

namespace graphproof::checks::watched::d29 {
namespace {

/// Whether Python's multiprocessing started the process. Parents end such workers by a signal where
/// they no longer need them, which looks like an exit without handlers.
bool of_multiprocessing(const JobProcess& process, const WatchedJob& job) {
  for (const std::string& argument : process.line().command)
    if (argument.find("multiprocessing") != std::string::npos) return true;
  return std::ranges::any_of(job.processes, [&](const JobProcess& other) {
    return other.line().host == process.line().host &&
           other.line().pid == process.line().parent_pid &&
           other.line().command == process.line().command;  // forked
  });
}

}  // namespace

record::CheckResult teardown_order(WatchedJudgement& judgement, const WatchedJob& job) {
  const record::WatchedRun& run = job.run;
  int teardowns = 0;
  for (const JobProcess& process : job.processes) {
    if (!process.has_graphs()) continue;
    const std::vector<Executable> all = executables(process);
    const auto communicates =
        std::ranges::find_if(all, [](const Executable& one) { return one.communicates(); });
    for (const auto& line : process.of<record::LiveGraphsLine>()) {
      ++teardowns;
      // The kernels of graphs that were not captured by this process's own calls are counted too.
      const bool with_nccl =
          line.executables_with_nccl > 0 ||
          (line.executables > 0 && std::ranges::any_of(all, [](const Executable& one) {
             return one.communicates() && !one.made->destroyed;
           }));
      if (!with_nccl) continue;
      const std::string at = program_line(line.stack);
      std::string which;
      if (!line.with_nccl.empty()) {
        const auto of = std::ranges::find(all, line.with_nccl.front(), &Executable::number);
        if (of != all.end()) which = of->title();
      } else if (communicates != all.end()) {
        which = communicates->title();
      }
      judgement.defect(
          process,
          {.what = concat(line.what, at.empty() ? "" : " at " + at,
                          " begins while graphs with kernels of NCCL are alive"),
           .got = concat(std::max(line.executables_with_nccl, std::int64_t{1}), " such graphs",
                         which.empty() ? "" : ", the first " + which),
           .want = "no graph with kernels of NCCL",
           .why =
               "NCCL waits in the destruction of a communicator until all graphs that use it are "
               "gone: the process hangs",
           .next =
               "reset the graphs before it (graph.reset(), del graph, torch.cuda.synchronize())"});
    }
    if (process.line().state == "cut_short" && process.line().executables_live > 0) {
      const bool worker = of_multiprocessing(process, job);
      if (!worker && run.ending == "exited" && run.exit_code.value_or(1) == 0)
        judgement.defect(
            process, {.what = "the process ended without its exit handlers while graphs were alive",
                      .got = concat(process.line().executables_live,
                                    " executable graphs alive, exit code 0"),
                      .want = "graphs that are destroyed, or an exit that runs its handlers",
                      .why = "replays may still run on the device while its memory is taken away, "
                             "and other ranks may wait for them",
                      .next = "synchronise and reset the graphs before os._exit()"});
      else
        judgement.unexercised(concat(process.title(), " was stopped while its graphs were alive (",
                                     worker          ? "a worker that its parent may have ended"
                                     : run.exit_code ? concat("exit code ", *run.exit_code)
                                                     : run.ending,
                                     ")"));
    }
    // Python sees the teardown of process groups; without it only the end of the communicator is
    // seen, which never comes where it hangs.
    if (communicates != all.end())
      if (const auto unseen = process.unseen("python"))
        judgement.unexercised(concat(process.title(), " was not seen whole: ", *unseen));
    judgement.confirm(process);
  }
  return judgement.result(concat(teardowns, " teardowns, none with live graphs that use NCCL"),
                          "graphs are destroyed before communicators and before the exit");
}

}  // namespace graphproof::checks::watched::d29
