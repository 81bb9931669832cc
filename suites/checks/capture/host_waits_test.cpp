#include <gtest/gtest.h>

#include "suites/checks/testing/check_rows.h"

namespace graphproof::checks {
namespace {

TEST(HostWaits, Rows) {
  const Where eager{.rank = 1, .kind = "host_waits", .arm = "eager_a"};
  const auto waits = [=](bool captured) {
    return [=](Attempt& a) {
      set(a, eager, "waits",
          {{{"place", "train.py:12 load"}, {"times", 4}, {"captured", false}},
           {{"place", "train.py:41 step"}, {"times", 8}, {"captured", captured}},
           {{"place", "train.py:47 clip"}, {"times", 1}, {"captured", captured}}});
    };
  };
  judge_rows("D87.host_waits",
             {{"subject", "torch"}, {"impl", "full_iteration"}, {"dp", 2}, {"comm", "c10d"}},
             {
                 {.name = "two places of what is captured (M424)",
                  .change = waits(true),
                  .rank = 1,
                  .mentions = {"a step that is to be captured waits for the device",
                               "train.py:41 step, 8 times; train.py:47 clip, 1 time"}},
                 {.name = "places that stay outside of the graphs",
                  .change = waits(false),
                  .want = record::Result::pass},
                 {.name = "no step was watched",
                  .change = [=](Attempt& a) { set(a, eager, "steps", 0); },
                  .rank = 1,
                  .mentions = {"no step that was watched"}},
                 rank_died(eager),
             });
}

}  // namespace
}  // namespace graphproof::checks
