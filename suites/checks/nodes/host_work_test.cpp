#include <gtest/gtest.h>

#include "suites/checks/testing/check_rows.h"

namespace graphproof::checks {
namespace {

const Where kSolo{.rank = 1, .kind = "host_work", .arm = "solo_graph"};

TEST(HostNodes, Rows) {
  judge_rows("D60.host_nodes", kTwoRanks,
             {
                 {.name = "a host function of the rank program (M526)",
                  .change =
                      [](Attempt& a) {
                        set(a, kSolo, "host_functions",
                            {{"/opt/graphproof/bin/graphproof-rank-cuda", 1}, {"libnccl.so.2", 1}});
                      },
                  .rank = 1,
                  .mentions = {"of arm solo_graph calls a host function of the program",
                               "1 host nodes whose function belongs to "
                               "/opt/graphproof/bin/graphproof-rank-cuda"}},
                 {.name = "of no file, as one that was made at run time",
                  .change = [](Attempt& a) { set(a, kSolo, "host_functions", {{"", 2}}); },
                  .rank = 1,
                  .mentions = {"2 host nodes whose function belongs to no file"}},
                 rank_died({.rank = 1, .kind = "host_work"}),
             });
}

TEST(HostMemoryOperands, Rows) {
  judge_rows(
      "D60.host_memory_operands", kTwoRanks,
      {
          {.name = "a copy from pageable memory (M527)",
           .change =
               [](Attempt& a) { set(a, kSolo, "host_memory", {{"pinned", 4}, {"pageable", 1}}); },
           .rank = 1,
           .mentions = {"of arm solo_graph copies pageable memory", "1 of 5 sides of copies"}},
          rank_died({.rank = 1, .kind = "host_work"}),
      });
}

}  // namespace
}  // namespace graphproof::checks
