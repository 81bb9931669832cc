#include <gtest/gtest.h>

#include "suites/checks/testing/check_rows.h"

namespace graphproof::checks {
namespace {

const Where kForeign{.rank = 1, .kind = "host_work", .arm = "solo_graph"};

TEST(ForeignThreads, Rows) {
  judge_rows("D61.foreign_threads", kTwoRanks,
             {
                 {.name = "a thread of the program (M530)",
                  .change =
                      [](Attempt& a) {
                        set(a, kForeign, "other_threads", {{"loader", 3}, {"pt_autograd_0", 212}});
                      },
                  .rank = 1,
                  .mentions = {"another thread worked during the capture of graph",
                               "3 operators of thread loader"}},
                 rank_died({.rank = 1, .kind = "host_work"}),
             });
}

}  // namespace
}  // namespace graphproof::checks
