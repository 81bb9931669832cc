#include <gtest/gtest.h>

#include "suites/checks/testing/check_rows.h"

namespace graphproof::checks {
namespace {

TEST(OverlappedReduction, Rows) {
  const Where line{.rank = 1,
                   .kind = "hyperparameter",
                   .arm = "lockstep_graph",
                   .step = 3,
                   .name = "buckets_overlapped"};
  judge_rows(
      "D43.overlapped_reduction",
      {{"impl", "local"}, {"dp", 2}, {"microbatches", 2}, {"overlap_grad_reduce", true}},
      {
          {.name = "hooks that no replay calls (M167)",
           .change = [=](Attempt& a) { set(a, line, "effective", 1); },
           .rank = 1,
           .mentions = {"began to reduce too few buckets", "of step 3", "got 1 of 2 buckets"}},
          {.name = "no bucket",
           .change =
               [=](Attempt& a) {
                 set(a, line, "host", 0);
                 set(a, line, "effective", 0);
               },
           .rank = 1,
           .mentions = {"at least one"}},
          {.name = "absent",
           .change = [=](Attempt& a) { erase(a, line); },
           .rank = 1,
           .mentions = {"`hyperparameter` line of buckets_overlapped"}},
      });
}

TEST(OverlappedReduction, IsAskedOfEagerCasesToo) {
  const auto judged = [](const nlohmann::json& axes) {
    return judge_one("D43.overlapped_reduction", axes, [](Attempt&) {}).result;
  };
  EXPECT_EQ(judged({{"impl", "none"}, {"dp", 2}, {"overlap_grad_reduce", true}}),
            record::Result::pass);
  EXPECT_EQ(judged({{"impl", "none"}, {"dp", 2}}), record::Result::not_applicable);
}

}  // namespace
}  // namespace graphproof::checks
