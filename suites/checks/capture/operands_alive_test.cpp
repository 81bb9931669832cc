#include <gtest/gtest.h>

#include "suites/checks/testing/check_rows.h"

namespace graphproof::checks {
namespace {

TEST(OperandsAlive, Rows) {
  const Where third{.rank = 1, .kind = "operands", .arm = "lockstep_graph", .step = 3};
  judge_rows(
      "D05.operands_alive", kTwoRanks,
      {
          {.name = "a freed input (M27)",
           .change =
               [=](Attempt& a) {
                 set(a, third, "freed",
                     {"0x7f0000000200, 4096 bytes", "0x7f0000002200, 512 bytes"});
               },
           .rank = 1,
           .mentions = {"a graph of arm lockstep_graph is about to use memory that was freed",
                        "0x7f0000000200, 4096 bytes, and 1 more"}},
          {.name = "no access was inspected",
           .change = [=](Attempt& a) { set(a, third, "blocks", 0); },
           .rank = 1,
           .mentions = {"0 blocks inspected"}},
          {.name = "absent",
           .change = [=](Attempt& a) { erase(a, third); },
           .rank = 1,
           .mentions = {"`operands` line of arm lockstep_graph at step 3"}},
          rank_died(third),
      });
}

TEST(OperandsAlive, AreJudgedOnBothDevices) {
  const Where third{.rank = 1, .kind = "operands", .arm = "lockstep_graph", .step = 3};
  EXPECT_EQ(judge_one(
                "D05.operands_alive", kTwoRanks, [](Attempt&) {}, "cuda")
                .result,
            record::Result::pass);
  EXPECT_EQ(judge_one(
                "D05.operands_alive", kTwoRanks,
                [=](Attempt& a) { set(a, third, "freed", {"0x7f0000000200, 4096 bytes"}); }, "cuda")
                .result,
            record::Result::fail);
}

}  // namespace
}  // namespace graphproof::checks
