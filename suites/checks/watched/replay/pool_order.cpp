// D35 in a watched run: graphs that share a memory pool are replayed in the order of their
// captures. PyTorch asks for it: a later capture reuses what an earlier graph left free.
#include <algorithm>
#include <map>

#include "suites/checks/attempt/concat.h"
#include "suites/checks/watched/job/watched_judgement.h"

namespace graphproof::checks::watched::d35 {
namespace {

/// Whether `later`, captured after `earlier`, is launched before it in each round. Both have to be
/// launched equally often, more than once, and by turns: graphs of which one or the other runs, as
/// those of several batch sizes, do not, and may share a pool in any order.
bool launched_before(const Executable& later, const Executable& earlier) {
  const record::ReplaysLine *b = later.replays, *a = earlier.replays;
  if (!a || !b || !a->first_s || !b->first_s || !a->last_s || !b->last_s) return false;
  if (a->launches != b->launches || a->launches < 2) return false;
  if (!(*b->first_s < *a->first_s && *b->last_s < *a->last_s && *a->first_s < *b->last_s))
    return false;
  // By turns: `earlier` begins in the first round of `later`. First launches take longer than later
  // ones, so a quarter of all launches counts as the first round.
  const double all = *b->last_s - *b->first_s;
  return *a->first_s - *b->first_s < std::max(all / static_cast<double>(b->launches - 1), all / 4);
}

}  // namespace

record::CheckResult pool_order(WatchedJudgement& judgement, const WatchedJob& job) {
  int pools = 0;
  for (const JobProcess& process : job.processes) {
    if (!process.has_graphs()) continue;
    std::map<std::vector<std::int64_t>, std::vector<Executable>> by_pool;  // in order of capture
    const std::vector<Executable> all = executables(process);
    for (const Executable& one : all)
      if (one.capture && one.capture->pool && one.launches() > 0)
        by_pool[*one.capture->pool].push_back(one);
    bool shared = false;
    for (const auto& [pool, graphs] : by_pool) {
      if (graphs.size() < 2) continue;
      shared = true;
      ++pools;
      // Neighbours are enough: an order that is turned anywhere is turned between two of them.
      for (std::size_t i = 1; i < graphs.size(); ++i) {
        if (!launched_before(graphs[i], graphs[i - 1])) continue;
        judgement.defect(
            process,
            {.what = concat(graphs[i].title(), ", shares a pool with ", graphs[i - 1].title(),
                            ", and is replayed before it"),
             .got =
                 concat("first launches after ", *graphs[i].replays->first_s, " s and ",
                        *graphs[i - 1].replays->first_s, " s, ", graphs[i].launches(), " of each"),
             .want = "replays in the order of the captures",
             .why = "the later capture reuses memory that the earlier graph left free, so its "
                    "replay overwrites outputs of the earlier graph that are still wanted",
             .next = "replay in the order of capture, or give each graph a pool of its own (no "
                     "pool= argument)"});
      }
    }
    if (shared)
      judgement.confirm(process);
    else
      judgement.excuse(process, "no two graphs share a memory pool");
  }
  return judgement.result(concat(pools, " shared pools, replayed in the order of capture"),
                          "graphs of one pool are replayed in the order of their captures");
}

}  // namespace graphproof::checks::watched::d35
