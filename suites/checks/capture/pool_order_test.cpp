#include <gtest/gtest.h>

#include "suites/checks/testing/check_rows.h"

namespace graphproof::checks {
namespace {

TEST(PoolOrder, Rows) {
  const Where third{.rank = 1, .kind = "replay", .arm = "lockstep_graph", .step = 3};
  judge_rows(
      "D35.pool_order", kTwoRanks,
      {
          {.name = "out of order (M43)",
           .change = [=](Attempt& a) { set(a, third, "out_of_order", 2); },
           .rank = 1,
           .mentions = {"graphs of one pool ran in another order", "2 launches out of order"}},
          {.name = "no count",
           .change = [=](Attempt& a) { unset(a, third, "out_of_order"); },
           .rank = 1,
           .mentions = {"unknown launches"}},
          rank_died({.rank = 1, .kind = "replay"}),
      });
}

}  // namespace
}  // namespace graphproof::checks
