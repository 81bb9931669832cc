#include "workloads/soak/soak_plan.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace graphproof::soak {
namespace {

TEST(SoakPlan, EveryCycleEvaluatesLoadsAndIsThenMeasuredUntilItsEnd) {
  for (const std::int64_t steps : {200, 333, 1000, 9999}) {
    const Plan plan(steps);
    SCOPED_TRACE(steps);
    EXPECT_EQ(plan.steps() / kCycles, plan.cycle_steps());
    EXPECT_LE(plan.steps(), steps);
    EXPECT_LT(0, plan.saved());
    EXPECT_LT(plan.saved(), plan.loaded());
    EXPECT_LE(plan.loaded(), plan.sample(0)) << "nothing is set up between two samples";
    EXPECT_EQ(plan.sample(kSamples - 1), plan.cycle_steps() - 1);
    EXPECT_EQ(plan.last_step(kCycles - 1), plan.steps() - 1);
  }
}

TEST(SoakPlan, TheJudgedStepsAreTheSamplesOfAllCyclesButTheFirst) {
  const Plan plan(250);
  const auto judged = plan.judged_steps();
  EXPECT_EQ(std::ssize(judged), (kCycles - kSettlingCycles) * kSamples);
  EXPECT_EQ(std::ranges::adjacent_find(judged, std::ranges::greater_equal()), judged.end());
  EXPECT_GE(judged.front(), plan.cycle_steps());
  EXPECT_EQ(judged.back(), plan.steps() - 1);
  for (const std::int64_t step : judged) EXPECT_TRUE(plan.sampled(step % plan.cycle_steps()));
  EXPECT_FALSE(plan.sampled(0));
}

}  // namespace
}  // namespace graphproof::soak
