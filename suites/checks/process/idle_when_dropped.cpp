// D29: graphs are destroyed only after their last replay has ended, because their memory is then
// given to the next allocation.
#include <algorithm>

#include "suites/checks/attempt/concat.h"
#include "suites/checks/attempt/judgement.h"

namespace graphproof::checks::d29 {

using record::EvictionsLine;
using record::TeardownLine;

/// No replay was in flight when the teardown destroyed the graphs, nor when graphs of one length
/// were evicted for those of another (axis shape_buckets).
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
           .why = "the memory of a running replay is given to the next allocation"});
    }
  }
  // Evictions of graphs (axis shape_buckets). A wait between steps would hide the defect, so one of
  // the two runs has none.
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
             .why =
                 "the memory of a running replay is given to the graphs that are captured next"});
      }
    }
  }
  return judgement.result(concat("idle on ", attempt.ranks.size(), " ranks"),
                          "no replay in flight");
}

}  // namespace graphproof::checks::d29
