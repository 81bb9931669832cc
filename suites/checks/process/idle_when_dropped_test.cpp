#include <gtest/gtest.h>

#include "suites/checks/testing/check_rows.h"

namespace graphproof::checks {
namespace {

TEST(IdleWhenDropped, Rows) {
  const auto graphs = [](Attempt& a) -> Line& {
    for (Line& line : a.ranks[1].evidence->lines)
      if (line.kind == "teardown" && text(line, "step") == "graphs") return line;
    throw std::logic_error("no such line");
  };
  judge_rows("D29.idle_when_dropped", kTwoRanks,
             {
                 {.name = "dropped in flight (M72)",
                  .change = [=](Attempt& a) { graphs(a).fields["in_flight"] = 4; },
                  .rank = 1,
                  .mentions = {"rank 1 dropped graphs that the device was still running",
                               "4 replays in flight"}},
                 {.name = "no count",
                  .change = [=](Attempt& a) { graphs(a).fields.erase("in_flight"); },
                  .rank = 1,
                  .mentions = {"unknown replays in flight"}},
                 rank_died({.rank = 1, .kind = "teardown"}),
             });
}

TEST(IdleWhenDropped, RowsOfEvictedGraphs) {
  const Where evictions{.rank = 0, .kind = "evictions"};
  judge_rows("D29.idle_when_dropped", kChangingLengths,
             {
                 {.name = "an eviction that does not wait (M145)",
                  .change = [=](Attempt& a) { set(a, evictions, "in_flight", 2); },
                  .rank = 0,
                  .mentions = {"rank 0 evicted graphs that the device was still running",
                               "got 2 replays in flight"}},
                 {.name = "no line",
                  .change = [=](Attempt& a) { erase(a, evictions); },
                  .rank = 0,
                  .mentions = {"`evictions` line of buckets"}},
             });
}

}  // namespace
}  // namespace graphproof::checks
