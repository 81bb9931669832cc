#include "reports/outcome/order.h"

#include <gtest/gtest.h>

#include "reports/testing/healthy_case.h"

namespace graphproof::reports {
namespace {

using record::operator""_verdict;

TEST(Order, PutsProductFailuresFirstAndTheWorstOfThemOnTop) {
  const RunResult run = mixed_run();
  const auto failures = failures_first(run);
  ASSERT_EQ(failures.size(), 3u);
  EXPECT_EQ(failures[0]->record.verdict, "fail.hang.replay"_verdict);
  EXPECT_EQ(failures[1]->record.verdict, "fail.numerics"_verdict);
  EXPECT_EQ(failures[2]->record.verdict, "unexercised"_verdict);
  EXPECT_EQ(acceptable(run).size(), 2u);
}

}  // namespace
}  // namespace graphproof::reports
