#include <gtest/gtest.h>

#include "suites/checks/testing/check_rows.h"
#include "suites/checks/testing/memory_lines.h"

namespace graphproof::checks {
namespace {

using nlohmann::json;

TEST(PoolSharing, Rows) {
  const Where capture{.rank = 1, .kind = "capture", .arm = "solo_graph"};
  judge_rows("D31.pool_sharing", kTwoRanks,
             {
                 {.name = "a pool for every graph (M63)",
                  .change = [=](Attempt& a) { set(a, capture, "pools", 4); },
                  .rank = 1,
                  .mentions = {"the graphs of arm solo_graph do not share their memory", "4 pools",
                               "1 at most, by axis pool: single"}},
                 {.name = "no count",
                  .change = [=](Attempt& a) { unset(a, capture, "pools"); },
                  .rank = 1,
                  .mentions = {"unknown pools"}},
                 {.name = "the rank died",
                  .change = [](Attempt& a) { die_before(a, {.rank = 1, .kind = "capture"}); },
                  .want = record::Result::unexercised,
                  .rank = std::nullopt,
                  .mentions = {"rank 1"},
                  .also = {"*"}},
             });
}

TEST(PoolSharing, AsManyPoolsAsMicrobatchesWhereTheCaseAsksForIt) {
  const json per_microbatch = {{"impl", "manual"}, {"microbatches", 2}, {"pool", "per_microbatch"}};
  const auto pools = [](int count) {
    return [count](Attempt& a) { set(a, {.rank = 0, .kind = "capture"}, "pools", count); };
  };
  EXPECT_EQ(judge_one("D31.pool_sharing", per_microbatch, pools(2)).result, record::Result::pass);
  EXPECT_EQ(judge_one("D31.pool_sharing", per_microbatch, pools(3)).result, record::Result::fail);
}

TEST(PoolsApart, Rows) {
  const json per_graph = {{"impl", "local"},
                          {"tp", 2},
                          {"microbatches", 2},
                          {"pool", "per_graph"},
                          {"optimizer_graph", true}};
  judge_rows("D31.pools_apart", per_graph,
             {
                 {.name = "one pool for all graphs (M357)",
                  .change =
                      [](Attempt& a) {
                        set(a, {.rank = 1, .kind = "capture", .arm = "solo_graph"}, "pools", 1);
                      },
                  .rank = 1,
                  .mentions = {"the graphs of arm solo_graph share their memory",
                               "1 pools at the capture of optimizer, graph 2 of the arm",
                               "2, by axis pool: per_graph"}},
                 {.name = "no count",
                  .change =
                      [](Attempt& a) {
                        unset(a, {.rank = 1, .kind = "capture", .arm = "solo_graph"}, "pools");
                      },
                  .rank = 1,
                  .mentions = {"unknown pools"}},
                 {.name = "the rank died",
                  .change = [](Attempt& a) { die_before(a, {.rank = 1, .kind = "capture"}); },
                  .want = record::Result::unexercised,
                  .rank = std::nullopt,
                  .mentions = {"rank 1"},
                  .also = {"*"}},
             });
}

TEST(PoolSharing, ValidationHasAPoolOfItsOwn) {
  const auto second_pool = [](const char* graph) {
    return [graph](Attempt& a) {
      set(a, {.rank = 0, .kind = "capture"}, "pools", 2);
      set(a, {.rank = 0, .kind = "capture"}, "graph", graph);
    };
  };
  EXPECT_EQ(judge_one("D31.pool_sharing", kTwoRanks, second_pool("validation")).result,
            record::Result::pass);
  EXPECT_EQ(judge_one("D31.pool_sharing", kTwoRanks, second_pool("training")).result,
            record::Result::fail);
}

}  // namespace
}  // namespace graphproof::checks
