#include "reports/analysis/compare.h"

#include <gtest/gtest.h>

#include "reports/record/schema/violations.h"
#include "reports/testing/healthy_case.h"

namespace graphproof::reports {
namespace {

using record::operator""_verdict;

CaseResult with(char digit, record::Verdict verdict, nlohmann::json axes,
                std::map<std::string, double> figures = {}) {
  CaseResult one = ended(digit, "case " + std::string(1, digit), verdict, 90);
  one.plan.axes = std::move(axes);
  one.record.figures = std::move(figures);
  return one;
}

/// Four cases, all acceptable: impl local or manual, allocator default or expandable.
RunResult healthy() {
  return run_of({with('1', "pass"_verdict, {{"impl", "local"}, {"allocator", "default"}},
                      {{"eager_ms", 10}, {"pool_bytes", 100}}),
                 with('2', "pass"_verdict, {{"impl", "local"}, {"allocator", "expandable"}},
                      {{"eager_ms", 10}}),
                 with('3', "pass"_verdict, {{"impl", "manual"}, {"allocator", "default"}},
                      {{"eager_ms", 10}}),
                 with('4', "pass"_verdict, {{"impl", "manual"}, {"allocator", "expandable"}},
                      {{"eager_ms", 10}})});
}

TEST(Compare, ARunAgainstItselfChangesNothing) {
  const Comparison result = compare(healthy(), healthy());
  EXPECT_EQ(result.compared, 4);
  EXPECT_TRUE(result.stack.empty());
  EXPECT_TRUE(result.broke.cases.empty() && result.healed.cases.empty() &&
              result.slower.cases.empty());
  EXPECT_EQ(exit_code(result), record::ExitCode::ok);
  EXPECT_EQ(text(result),
            "20261121-101500-3f2a -> 20261121-101500-3f2a: 4 cases compared\nstack: the same\n");
}

TEST(Compare, NamesTheStackPartAndTheAxisValueOfWhatBroke) {
  RunResult later = healthy();
  later.run.stack.nccl_version = "2.29.2";
  later.cases[1].record.verdict = "fail.hang.replay"_verdict;
  later.cases[3].record.verdict = "fail.numerics"_verdict;
  const Comparison result = compare(healthy(), later);
  ASSERT_EQ(result.stack.size(), 1u);
  EXPECT_EQ(result.stack[0].part, "NCCL");
  ASSERT_EQ(result.broke.cases.size(), 2u);
  ASSERT_FALSE(result.broke.explained_by.empty());
  EXPECT_EQ(result.broke.explained_by[0].expression, "allocator == expandable");
  EXPECT_EQ(result.broke.explained_by[0].inside, 2);
  EXPECT_EQ(result.broke.explained_by[0].outside, 0);
  EXPECT_EQ(exit_code(result), record::ExitCode::product);
}

TEST(Compare, APairOfValuesExplainsWhatNoSingleOneDoes) {
  RunResult later = healthy();
  later.cases[3].record.verdict = "fail.numerics"_verdict;
  const Comparison result = compare(healthy(), later);
  ASSERT_FALSE(result.broke.explained_by.empty());
  EXPECT_EQ(result.broke.explained_by[0].expression, "allocator == expandable and impl == manual");
}

TEST(Compare, HealedIsNoFailureAndLostIsNoPass) {
  RunResult before = healthy();
  before.cases[0].record.verdict = "fail.numerics"_verdict;
  EXPECT_EQ(compare(before, healthy()).healed.cases.size(), 1u);
  EXPECT_EQ(exit_code(compare(before, healthy())), record::ExitCode::ok);

  RunResult later = healthy();
  later.cases[2].record.verdict = "skipped.gpus"_verdict;
  const Comparison lost = compare(healthy(), later);
  ASSERT_EQ(lost.lost.cases.size(), 1u);
  EXPECT_EQ(lost.compared, 3);
  EXPECT_EQ(exit_code(lost), record::ExitCode::coverage);
}

TEST(Compare, FiguresCountFromTheNotableRatioOn) {
  RunResult later = healthy();
  later.cases[0].record.figures = {{"eager_ms", 12.4}, {"pool_bytes", 125}};
  later.cases[1].record.figures = {{"eager_ms", 12.5}};
  later.cases[2].record.figures = {{"eager_ms", 8}};
  const Comparison result = compare(healthy(), later);
  ASSERT_EQ(result.slower.cases.size(), 1u);
  EXPECT_EQ(result.slower.cases[0].case_id, std::string(16, '2'));
  EXPECT_DOUBLE_EQ(result.slower.cases[0].ratio, 1.25);
  EXPECT_EQ(result.faster.cases.size(), 1u);
  EXPECT_EQ(result.grew.cases.size(), 1u);
  EXPECT_EQ(exit_code(result), record::ExitCode::ok) << "time is a figure, not a verdict";
}

TEST(Compare, FiguresOfAFailureAreNotCompared) {
  RunResult later = healthy();
  later.cases[0].record.verdict = "fail.numerics"_verdict;
  later.cases[0].record.figures = {{"eager_ms", 100}};
  EXPECT_TRUE(compare(healthy(), later).slower.cases.empty());
}

TEST(Compare, DifferentMatricesAreNamedAndNothingComparedIsNoPass) {
  RunResult other = run_of({with('9', "pass"_verdict, {{"impl", "none"}})});
  const Comparison result = compare(healthy(), other);
  EXPECT_EQ(result.compared, 0);
  EXPECT_EQ(result.only_left.size(), 4u);
  EXPECT_EQ(result.only_right, std::vector<std::string>{"case 9"});
  EXPECT_EQ(exit_code(result), record::ExitCode::coverage);
}

TEST(Compare, JsonFollowsItsSchema) {
  RunResult later = healthy();
  later.cases[3].record.verdict = "fail.numerics"_verdict;
  later.cases[0].record.figures = {{"eager_ms", 30}};
  EXPECT_EQ(record::violations("compare", to_json(compare(healthy(), later))),
            std::vector<std::string>{});
}

}  // namespace
}  // namespace graphproof::reports
