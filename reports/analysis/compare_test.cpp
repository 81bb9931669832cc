#include "reports/analysis/compare.h"

#include <gtest/gtest.h>

#include "reports/analysis/gates.h"
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
  EXPECT_TRUE(result.drift.empty());
  EXPECT_EQ(result.covered_left, result.covered_right);
  for (const FigureChange& one : result.figures) EXPECT_EQ(one.ratio, 1) << one.figure;
  EXPECT_EQ(exit_code(result), record::ExitCode::ok);
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
  EXPECT_EQ(result.broke.explained_by.expression, "allocator == expandable");
  EXPECT_EQ(result.broke.explained_by.inside, 2);
  EXPECT_EQ(result.broke.explained_by.outside, 0);
  EXPECT_EQ(exit_code(result), record::ExitCode::product);
}

TEST(Compare, AnExpressionCanBeTypedIntoAFilter) {
  RunResult before = healthy();
  for (std::size_t i = 0; i < before.cases.size(); ++i)
    before.cases[i].plan.axes = {{"nccl_graph_register", i < 2 ? "0" : "1"}};
  RunResult later = before;
  for (std::size_t i = 0; i < 2; ++i) later.cases[i].record.verdict = "fail.numerics"_verdict;
  const Comparison result = compare(before, later);
  EXPECT_EQ(result.broke.explained_by.expression, "nccl_graph_register == \"0\"");
}

TEST(Compare, APairOfValuesExplainsWhatNoSingleOneDoes) {
  RunResult later = healthy();
  later.cases[3].record.verdict = "fail.numerics"_verdict;
  const Comparison result = compare(healthy(), later);
  EXPECT_EQ(result.broke.explained_by.expression, "allocator == expandable and impl == manual");
}

TEST(Compare, AnExplanationMayLeaveOutWhatChangedByChance) {
  RunResult before = run_of({}), later = run_of({});
  for (int i = 0; i < 20; ++i) {
    const bool manual = i < 10;
    before.cases.push_back(with(static_cast<char>('a' + i), "pass"_verdict,
                                {{"impl", manual ? "manual" : "local"}, {"tp", 1 + i % 3}},
                                {{"eager_ms", 10}}));
    later.cases.push_back(before.cases.back());
    // All with manual became slower, and one other by chance.
    if (manual || i == 15) later.cases.back().record.figures = {{"eager_ms", 20}};
  }
  const Explanation found = compare(before, later).slower.explained_by;
  EXPECT_EQ(found.expression, "impl == manual");
  EXPECT_EQ(found.inside, 10);
  EXPECT_EQ(found.outside, 0);
  EXPECT_EQ(found.others, 9);
  for (int i = 0; i < 20; ++i)  // all but one became slower, whatever their values
    later.cases[static_cast<std::size_t>(i)].record.figures = {{"eager_ms", i == 7 ? 10 : 20}};
  EXPECT_EQ(compare(before, later).slower.explained_by.expression, "");
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

TEST(Compare, FiguresHaveAnIntervalFromEightCasesOn) {
  const auto run = [](double factor, int cases) {
    std::vector<CaseResult> all;
    for (int i = 0; i < cases; ++i)
      all.push_back(with(static_cast<char>('1' + i), "pass"_verdict, {{"tp", i}},
                         {{"graph_step_ms", (2 + 0.01 * (i % 3)) * factor}}));
    return run_of(all);
  };
  const Comparison few = compare(run(1, 7), run(1.04, 7));
  ASSERT_EQ(few.figures.size(), 1u);
  EXPECT_FALSE(few.figures[0].interval);
  const Comparison result = compare(run(1, 8), run(1.04, 8));
  ASSERT_EQ(result.figures.size(), 1u);
  EXPECT_NEAR(result.figures[0].ratio, 1.04, 1e-9);
  ASSERT_TRUE(result.figures[0].interval);
  EXPECT_NEAR(result.figures[0].interval->low, 1.04, 1e-9);
  EXPECT_TRUE(result.slower.cases.empty()) << "no single case is slower by kNotable";
}

TEST(Compare, OtherGpusHaveNoCommonTimesAndOtherSeedsNoCommonNumbers) {
  RunResult before = healthy(), later = healthy();
  before.run.stack.gpus = {"NVIDIA H100"};
  later.run.stack.gpus = {"NVIDIA H200"};
  later.run.seed = 2;
  later.cases[0].record.figures = {{"eager_ms", 100}};
  const Comparison result =
      compare(before, later, {{std::string(16, '1'), {DriftClass::beyond, "a loss"}}});
  EXPECT_EQ(result.no_figures, "the GPUs differ");
  EXPECT_TRUE(result.figures.empty() && result.slower.cases.empty());
  EXPECT_EQ(result.no_drift, "the seeds differ");
  EXPECT_TRUE(result.drift.empty());
}

TEST(Compare, RefusesRunsThatHaveNothingInCommon) {
  EXPECT_FALSE(not_comparable(healthy(), healthy()));
  RunResult other = healthy();
  other.run.device = "cuda";
  EXPECT_EQ(not_comparable(healthy(), other)->got, "sim and cuda");
  other = healthy();
  other.run.matrix.axes_version = 2;
  EXPECT_NE(not_comparable(healthy(), other)->why.find("not the same configuration"),
            std::string::npos);
  other = run_of({with('9', "pass"_verdict, {{"impl", "none"}})});
  EXPECT_EQ(not_comparable(healthy(), other)->why, "no case is in both runs");
}

TEST(Compare, JsonFollowsItsSchema) {
  RunResult later = healthy();
  later.cases[3].record.verdict = "fail.numerics"_verdict;
  later.cases[0].record.figures = {{"eager_ms", 30}};
  const Comparison result =
      compare(healthy(), later, {{std::string(16, '1'), {DriftClass::ulp, "a loss"}}});
  EXPECT_EQ(record::violations("compare", to_json(result, parse_gates("broken,perf>3%"))),
            std::vector<std::string>{});
}

}  // namespace
}  // namespace graphproof::reports
