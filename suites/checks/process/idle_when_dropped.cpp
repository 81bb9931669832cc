// D29: graphs are dropped only after their last replay has ended, because their memory goes to the
// next allocation.
#include <algorithm>

#include "suites/checks/attempt/concat.h"
#include "suites/checks/attempt/judgement.h"

namespace graphproof::checks::d29 {

using record::EvictionsLine;
using record::TeardownLine;

/// No replay was in flight when teardown dropped the graphs, and none when the graphs of one
/// length were evicted for another (axis shape_buckets).
record::CheckResult idle_when_dropped(Judgement& judgement, const Attempt& attempt) {
  if (!judgement.has_replays()) return judgement.result("", "");
  for (const RankFiles& files : attempt.ranks) {
    const auto steps = judgement.lines<TeardownLine>(files);
    const auto graphs = std::ranges::find(steps, "graphs", &TeardownLine::step);
    if (graphs == steps.end()) {
      judgement.absent<TeardownLine>(files, "of the graphs");
    } else if (graphs->in_flight == 0) {
      judgement.confirm(files.rank);
    } else {
      judgement.defect(
          {.rank = files.rank,
           .step = std::nullopt,
           .what = concat("rank ", files.rank, " dropped graphs that the device was still running"),
           .got = concat(shown(graphs->in_flight), " replays in flight"),
           .want = "0: wait for the last replay first",
           .why = "the memory of a running replay goes to whoever allocates next"});
    }
  }
  // Of graphs that made room for others (axis shape_buckets): a wait between the steps would hide
  // it, so one run has none.
  for (const RankFiles& files : attempt.ranks) {
    if (attempt.axes.integer("shape_buckets") == 0) break;
    for (const char* run : {"buckets", "buckets_free_run"}) {
      const auto lines = judgement.lines<EvictionsLine>(files);
      const auto line = std::ranges::find(lines, run, &EvictionsLine::run);
      if (line == lines.end()) {
        judgement.absent<EvictionsLine>(files, concat("of ", run));
      } else if (line->in_flight != 0) {
        judgement.defect(
            {.rank = files.rank,
             .step = line->step,
             .what =
                 concat("rank ", files.rank, " evicted graphs that the device was still running"),
             .got = concat(line->in_flight, " replays in flight"),
             .want = "0: wait for the last replay first",
             .why = "the memory of a running replay goes to the graphs that are captured next"});
      }
    }
  }
  return judgement.result(concat("idle on ", attempt.ranks.size(), " ranks"),
                          "no replay in flight");
}

}  // namespace graphproof::checks::d29
