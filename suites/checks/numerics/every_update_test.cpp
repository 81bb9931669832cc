#include <gtest/gtest.h>

#include "suites/checks/testing/check_rows.h"

namespace graphproof::checks {
namespace {

TEST(EveryUpdate, Rows) {
  const Where last{.rank = 1, .kind = "updates", .arm = "eager_a", .step = 4};
  judge_rows("D82.every_update", {{"impl", "none"}, {"dp", 2}, {"microbatches", 2}},
             {
                 {.name = "a norm stands still",
                  .change = [=](Attempt& a) { set(a, last, "error", 1e-3); },
                  .rank = 1,
                  .mentions = {"the optimizer moved `param:layers.0.norm.weight` otherwise than "
                               "it should in step 4",
                               "off by 0.001", "at most 6e-09", "all arms have the same"}},
                 {.name = "not a number",
                  .change = [=](Attempt& a) { set(a, last, "error", "nan"); },
                  .rank = 1,
                  .mentions = {"otherwise than it should"}},
                 {.name = "absent",
                  .change = [=](Attempt& a) { erase(a, last); },
                  .rank = 1,
                  .mentions = {"`updates` line of arm eager_a"}},
                 rank_died(last),
             });
}

}  // namespace
}  // namespace graphproof::checks
