#include "reports/analysis/groups.h"

#include <gtest/gtest.h>

#include "reports/testing/healthy_case.h"

namespace graphproof::reports {
namespace {

using record::operator""_verdict;

/// Three allocators by two placements by two registers; `hangs` says which case hangs.
RunResult grid(const std::function<bool(const nlohmann::json&)>& hangs) {
  RunResult run = run_of({});
  char digit = 'a';
  for (const char* allocator : {"default", "expandable", "async"})
    for (const char* placement : {"symmetric", "per_rank"})
      for (const char* registered : {"unset", "0"}) {
        const nlohmann::json axes = {{"allocator", allocator},
                                     {"placement", placement},
                                     {"nccl_graph_register", registered},
                                     {"tp", 2}};
        CaseResult one = ended(digit++, "case", hangs(axes) ? "xfail"_verdict : "pass"_verdict, 84);
        if (hangs(axes)) one.record.observed = "fail.hang.replay"_verdict;
        one.plan.axes = axes;
        run.cases.push_back(one);
      }
  return run;
}

TEST(Groups, TheExpressionHoldsForTheGroupAndNoOtherCase) {
  const auto groups = failure_groups(grid([](const nlohmann::json& axes) {
    return axes["allocator"] != "default" && axes["placement"] == "per_rank";
  }));
  ASSERT_EQ(groups.size(), 1u);
  EXPECT_TRUE(groups[0].expected);
  EXPECT_EQ(groups[0].signature.verdict, "fail.hang.replay");
  EXPECT_EQ(groups[0].common.expression,
            "allocator in {async, expandable} and placement == per_rank");
  EXPECT_EQ(groups[0].cases.size(), 4u);
  EXPECT_EQ(groups[0].common.outside, 0);
  EXPECT_EQ(groups[0].common.others, 8);
}

TEST(Groups, ValuesThatAreNoWordsAreQuoted) {
  const auto groups = failure_groups(
      grid([](const nlohmann::json& axes) { return axes["nccl_graph_register"] == "0"; }));
  ASSERT_EQ(groups.size(), 1u);
  EXPECT_EQ(groups[0].common.expression, "nccl_graph_register == \"0\"");
}

TEST(Groups, WhatNoSetOfValuesExcludesIsCounted) {
  // Two opposite corners: every value of the group is also a value of other cases.
  const auto groups = failure_groups(grid([](const nlohmann::json& axes) {
    return axes["allocator"] == "async" &&
           (axes["placement"] == "per_rank") == (axes["nccl_graph_register"] == "0");
  }));
  ASSERT_EQ(groups.size(), 1u);
  EXPECT_EQ(groups[0].common.expression, "allocator == async");
  EXPECT_EQ(groups[0].common.outside, 2);
}

TEST(Groups, AVerdictThatRulesChangedMakesAGroupOfItsOwn) {
  CaseResult eager = ended('2', "b", "fail.eager"_verdict, 89);
  eager.record.observed = "fail.numerics"_verdict;
  const auto groups = failure_groups(run_of({ended('1', "a", "fail.numerics"_verdict, 60), eager}));
  ASSERT_EQ(groups.size(), 2u) << "one signature, but only one of them is a defect of graphs";
  EXPECT_EQ(groups[0].signature, groups[1].signature);
  EXPECT_NE(groups[0].verdict, groups[1].verdict);
}

TEST(Groups, OneCaseIsNotExplained) {
  const RunResult run = mixed_run();
  const auto groups = failure_groups(run);
  ASSERT_EQ(groups.size(), 3u) << "two failures and one unexercised case";
  for (const FailureGroup& group : groups) {
    EXPECT_FALSE(group.expected);
    EXPECT_EQ(group.cases.size(), 1u);
    EXPECT_EQ(group.common.expression, "");
  }
  EXPECT_EQ(groups[0].signature.check, "D01.lockstep") << "product failures come first";
}

}  // namespace
}  // namespace graphproof::reports
