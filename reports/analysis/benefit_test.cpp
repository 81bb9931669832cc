#include "reports/analysis/benefit.h"

#include <gtest/gtest.h>

#include "reports/testing/healthy_case.h"

namespace graphproof::reports {
namespace {

using record::operator""_verdict;

CaseResult timed(char digit, record::Verdict verdict, std::map<std::string, double> figures) {
  CaseResult result = ended(digit, "case " + std::string(1, digit), verdict, 90);
  result.record.figures = std::move(figures);
  return result;
}

TEST(Benefit, BreakEvenIsTheNumberOfStepsThatSaveTheCaptureTime) {
  const auto rows = benefits(run_of(
      {timed('1', "pass"_verdict, {{"eager_ms", 10}, {"replay_ms", 2}, {"capture_ms", 40}})}));
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].break_even_steps, 5);
  EXPECT_EQ(rows[0].meaning, "gain");
}

TEST(Benefit, AGraphThatIsNotFasterNeverBreaksEven) {
  const auto rows = benefits(run_of(
      {timed('1', "pass"_verdict, {{"eager_ms", 2}, {"replay_ms", 2}, {"capture_ms", 40}})}));
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_FALSE(rows[0].break_even_steps);
  EXPECT_EQ(rows[0].meaning, "none");
  EXPECT_TRUE(to_json(rows[0])["break_even_steps"].is_null());
}

TEST(Benefit, NoneIsExpectedWhereTheGpuIsBusyAlready) {
  const std::map<std::string, double> figures = {{"eager_ms", 100}, {"replay_ms", 99}};
  auto busy = figures, idle = figures;
  busy["eager_busy_share"] = 0.96;
  idle["eager_busy_share"] = 0.94;
  const auto rows =
      benefits(run_of({timed('1', "pass"_verdict, busy), timed('2', "pass"_verdict, idle)}));
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].meaning, "not expected");
  EXPECT_EQ(rows[1].meaning, "gain");
}

TEST(Benefit, RanksThatShareAGpuHaveNoRow) {
  CaseResult wide = timed('1', "pass"_verdict, {{"eager_ms", 10}, {"replay_ms", 2}}),
             narrow = timed('2', "pass"_verdict, {{"eager_ms", 10}, {"replay_ms", 2}});
  wide.record.ranks = 4;
  narrow.record.ranks = 2;
  RunResult run = run_of({wide, narrow});
  run.run.slots = 2;
  EXPECT_EQ(benefits(run).size(), 2u);
  run.run.options.sharing.ranks_per_gpu = 2;
  const auto rows = benefits(run);
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].name, "case 2");
  run.run.options.sharing.cases_per_gpu = 2;
  EXPECT_TRUE(benefits(run).empty()) << "each case ran beside others";
  run.run.options.sharing = run.run.options.sharing.without_other_cases();
  EXPECT_EQ(benefits(run).size(), 1u);
}

TEST(Benefit, WrongAndEagerCasesHaveNoRow) {
  EXPECT_TRUE(
      benefits(run_of({timed('1', "fail.numerics"_verdict, {{"eager_ms", 10}, {"replay_ms", 2}}),
                       timed('2', "pass"_verdict, {{"eager_ms", 10}})}))
          .empty());
}

CaseResult of_axes(char digit, double eager_ms, double extra_bytes, nlohmann::json axes) {
  CaseResult result = timed(
      digit, "pass"_verdict,
      {{"eager_step_ms", eager_ms}, {"graph_step_ms", 1}, {"extra_memory_bytes", extra_bytes}});
  result.plan.axes = std::move(axes);
  return result;
}

TEST(Benefit, ByAxisIsTheMedianAndTheRangeOverTheCasesOfEachValue) {
  const auto rows = benefits_by_axis(run_of({
      of_axes('1', 2, 100, {{"impl", "local"}, {"tp", 1}, {"dp", 2}}),
      of_axes('2', 4, 300, {{"impl", "local"}, {"tp", 2}, {"dp", 2}}),
      of_axes('3', 9, 700, {{"impl", "full_iteration"}, {"tp", 1}, {"dp", 2}}),
      timed('4', "fail.numerics"_verdict, {{"eager_step_ms", 90}, {"graph_step_ms", 1}}),
  }));
  // The medians of tp are 5.5 and 4, those of impl 9 and 3; dp has one value.
  ASSERT_EQ(rows.size(), 4u);
  EXPECT_EQ(to_json(rows[0]), nlohmann::json({{"axis", "impl"},
                                              {"value", "full_iteration"},
                                              {"cases", 1},
                                              {"speed_up", 9.0},
                                              {"least", 9.0},
                                              {"largest", 9.0},
                                              {"extra_bytes", 700}}));
  EXPECT_EQ(to_json(rows[1]), nlohmann::json({{"axis", "impl"},
                                              {"value", "local"},
                                              {"cases", 2},
                                              {"speed_up", 3.0},
                                              {"least", 2.0},
                                              {"largest", 4.0},
                                              {"extra_bytes", 200}}));
  EXPECT_EQ(rows[2].axis, "tp");
  EXPECT_EQ(rows[2].value, 1);
  EXPECT_EQ(rows[2].speed_up, 5.5);
  EXPECT_EQ(rows[3].value, 2);
}

}  // namespace
}  // namespace graphproof::reports
