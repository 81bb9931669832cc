#include <gtest/gtest.h>

#include "suites/checks/testing/check_rows.h"

namespace graphproof::checks {
namespace {

const Where kUnordered{.rank = 1, .kind = "host_work", .arm = "solo_graph"};

TEST(UnorderedNodes, Rows) {
  judge_rows("D56.unordered_nodes", kTwoRanks,
             {
                 {.name = "a copy that nothing waits for (M528)",
                  .change =
                      [](Attempt& a) {
                        set(a, kUnordered, "unordered",
                            nlohmann::json::array({"node 7 (memcpy) writes 4096 bytes that node 9 "
                                                   "(gemm) uses"}));
                      },
                  .rank = 1,
                  .mentions = {"nothing orders two nodes of graph",
                               "1, the first one: node 7 (memcpy) writes 4096 bytes"}},
                 rank_died({.rank = 1, .kind = "host_work"}),
             },
             "cuda");
}

}  // namespace
}  // namespace graphproof::checks
