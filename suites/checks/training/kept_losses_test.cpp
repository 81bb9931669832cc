#include <gtest/gtest.h>

#include "suites/checks/testing/check_rows.h"

namespace graphproof::checks {
namespace {

TEST(KeptLosses, Rows) {
  const Where third{.rank = 1, .kind = "handed_out", .arm = "lockstep_graph", .step = 3};
  judge_rows("D12.kept_losses", kTwoRanks,
             {
                 {.name = "changed after they were returned (M38)",
                  .change = [=](Attempt& a) { set(a, third, "later_digest", "ffffffffffffffff"); },
                  .rank = 1,
                  .mentions = {"the losses that arm lockstep_graph returned in step 3 changed",
                               "ffffffffffffffff"}},
                 {.name = "no digest",
                  .change = [=](Attempt& a) { set(a, third, "digest", ""); },
                  .rank = 1,
                  .mentions = {"a digest, as when they were returned"}},
                 {.name = "absent",
                  .change = [=](Attempt& a) { erase(a, third); },
                  .rank = 1,
                  .mentions = {"`handed_out` line of arm lockstep_graph at step 3"}},
                 rank_died(third),
             });
}

}  // namespace
}  // namespace graphproof::checks
