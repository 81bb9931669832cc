#include <gtest/gtest.h>

#include "suites/checks/testing/check_rows.h"
#include "suites/checks/testing/memory_lines.h"

namespace graphproof::checks {
namespace {

TEST(PoolsReleased, Rows) {
  judge_rows("D32.pools_released", kTwoRanks,
             {
                 {.name = "a segment is left",
                  .change =
                      [](Attempt& a) {
                        memory_line(a, "solo_graph", "returned").fields["pool"] = 2097152;
                      },
                  .rank = 1,
                  .mentions = {"a graph pool of arm solo_graph outlives its graphs",
                               "2097152 bytes in graph pools", "0 at most"}},
                 {.name = "absent",
                  .change =
                      [](Attempt& a) {
                        memory_line(a, "solo_graph", "returned").fields["when"] = "dropped";
                      },
                  .rank = 1,
                  .mentions = {"`memory` line of arm solo_graph"},
                  .also = {"D30.returned_after_flush"}},
                 rank_died({.rank = 1, .kind = "memory", .arm = "solo_graph"}),
             });
}

}  // namespace
}  // namespace graphproof::checks
