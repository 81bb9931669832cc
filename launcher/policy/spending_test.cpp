#include "launcher/policy/spending.h"

#include <gtest/gtest.h>

namespace graphproof::launcher {
namespace {

record::Options bounds(std::int64_t budget_ms, std::int64_t max_gpu_ms) {
  record::Options options;
  options.budget_ms = budget_ms;
  options.max_gpu_ms = max_gpu_ms;
  return options;
}

TEST(SpendingTest, WithoutBoundsNothingIsReached) {
  Spending spending(bounds(0, 0), 0);
  spending.started("b001", 8, 0);
  EXPECT_FALSE(spending.reached(1'000'000'000));
}

TEST(SpendingTest, TheTimeBudgetCountsFromTheStartOfThisLauncher) {
  const Spending spending(bounds(1000, 0), 500);
  EXPECT_FALSE(spending.reached(1500));
  const auto end = spending.reached(1501);
  ASSERT_TRUE(end);
  EXPECT_EQ(end->ending, reports::Ending::budget);
  EXPECT_NE(end->notice.find("the time budget is over"), std::string::npos) << end->notice;
  EXPECT_NE(end->notice.find("graphproof resume"), std::string::npos) << end->notice;
}

TEST(SpendingTest, ThePriceIsRanksTimesTheTimeThatTheirSlotsAreLeased) {
  Spending spending(bounds(0, 1000), 0);
  spending.started("b001", 2, 100);
  spending.started("b002", 1, 100);
  EXPECT_FALSE(spending.reached(400)) << "(2 + 1) * 300 = 900";
  spending.ended("b001", 400);
  EXPECT_FALSE(spending.reached(499)) << "600 of the batch that has ended, 399 of the other";
  const auto end = spending.reached(500);
  ASSERT_TRUE(end);
  EXPECT_EQ(end->ending, reports::Ending::budget);
  EXPECT_NE(end->notice.find("--max-gpu-minutes is reached"), std::string::npos) << end->notice;
}

TEST(SpendingTest, RanksThatNeverBeganCostNothing) {
  Spending spending(bounds(0, 1000), 0);
  spending.started("b001", 4, 0);
  spending.forget("b001");
  EXPECT_FALSE(spending.reached(100'000));
}

TEST(SpendingTest, WhatAnEarlierLauncherSpentCountsTowardsThePrice) {
  record::Record earlier;
  earlier.seconds = 2;
  earlier.ranks = 4;
  Spending spending(bounds(1000, 8000), 0);
  EXPECT_FALSE(spending.reached(0));
  spending.add_earlier(earlier);
  EXPECT_TRUE(spending.reached(0)) << "2 s of 4 ranks";
}

}  // namespace
}  // namespace graphproof::launcher
