// D34 in a watched run: the number of executable graphs stops growing. A program that captures
// again for each new shape and keeps every graph runs out of memory in the end.
#include <algorithm>

#include "suites/checks/attempt/concat.h"
#include "suites/checks/watched/job/watched_judgement.h"

namespace graphproof::checks::watched::d34 {
namespace {

// Programs make their graphs before the first steps or in them. A leak goes on: this many graphs
// come in the second half of the time between the first launch and the last one, and graphs are
// launched this often at most on average, so that a new one is made again and again although
// others exist.
constexpr std::int64_t kLateGraphs = 8;
constexpr double kMostLaunches = 4.0;
// So many have to be alive at once: what is evicted is no leak.
constexpr double kLiveShare = 0.75;

}  // namespace

record::CheckResult graph_cache(WatchedJudgement& judgement, const WatchedJob& job) {
  std::int64_t most = 0;
  for (const JobProcess& process : job.processes) {
    if (!process.has_graphs()) continue;
    const std::vector<Executable> all = executables(process);
    std::optional<double> first, last;
    double launches = 0;
    for (const Executable& one : all) {
      launches += static_cast<double>(one.launches());
      if (!one.replays || !one.replays->first_s || !one.replays->last_s) continue;
      first = std::min(first.value_or(*one.replays->first_s), *one.replays->first_s);
      last = std::max(last.value_or(*one.replays->last_s), *one.replays->last_s);
    }
    if (!first) {
      judgement.excuse(process, "no graph was launched");
      continue;
    }
    const double middle = *first + (*last - *first) / 2;
    std::int64_t late = 0;
    bool timed = true;
    std::optional<Executable> newest;
    for (const Executable& one : all) {
      if (!one.made->seconds) timed = false;
      if (one.made->seconds.value_or(0) <= middle) continue;
      ++late;
      newest = one;
    }
    if (!timed) {
      judgement.unexercised(concat(process.title(), ": when its graphs were made is not known"));
      continue;
    }
    judgement.confirm(process);
    const std::int64_t live = process.line().executables_live_most;
    most = std::max(most, live);
    const auto made = static_cast<double>(all.size());
    if (late < kLateGraphs || launches > kMostLaunches * made ||
        static_cast<double>(live) < kLiveShare * made)
      continue;
    judgement.defect(
        process,
        {.what = concat("it makes new graphs until the end and keeps them, the "
                        "last one ",
                        newest->title()),
         .got = concat(late, " graphs in the second half of the run, ", live, " alive at once, ",
                       launches / made, " launches of a graph on average"),
         .want = "a number of graphs that stops growing",
         .why = "each graph and its pool keep device memory, and each capture "
                "costs many steps",
         .next = "pad to a few sizes, or evict the graphs that were not used "
                 "for long (reset())"});
  }
  return judgement.result(concat("at most ", most, " executable graphs alive at once"),
                          "a number of graphs that stops growing");
}

}  // namespace graphproof::checks::watched::d34
