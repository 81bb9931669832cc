#include "reports/record/verdict/verdict.h"

#include <gtest/gtest.h>

#include <set>

namespace graphproof::record {
namespace {

TEST(Verdict, EveryTextOfTheTableIsReadBackAndNoneIsThereTwice) {
  std::set<std::string_view> seen;
  for (const VerdictRow& row : kVerdicts) {
    ASSERT_TRUE(Verdict::from(row.text)) << row.text;
    EXPECT_EQ(Verdict::from(row.text)->text(), row.text);
    EXPECT_EQ(Verdict::from(row.text)->exit_code(), row.exit_code);
    EXPECT_TRUE(seen.insert(row.text).second) << row.text;
  }
}

TEST(Verdict, PartsAndNeighboursOfATextAreNoVerdict) {
  for (const char* text : {"", "fail", "fail.hang", "fail.hang.", "fail.hang.replayed", "Pass",
                           "pass ", "skipped", "infra"})
    EXPECT_FALSE(Verdict::from(text)) << text;
}

TEST(Verdict, EachPhaseHasItsHang) {
  for (std::size_t i = 0; i < kPhaseCount; ++i)
    EXPECT_EQ(Verdict::hang(static_cast<Phase>(i)).text(),
              "fail.hang." + std::string(kPhaseNames[i]));
}

TEST(Verdict, AVerdictThatNobodySetIsNotRun) { EXPECT_EQ(Verdict(), "not_run"_verdict); }

TEST(Verdict, FamiliesEndAtDots) {
  EXPECT_TRUE("fail.hang.replay"_verdict.in("fail"));
  EXPECT_TRUE("fail.hang.replay"_verdict.in("fail.hang"));
  EXPECT_TRUE("fail.hang.replay"_verdict.in("fail.hang.replay"));
  EXPECT_FALSE("fail.hang.replay"_verdict.in("fail.ha"));
  EXPECT_FALSE("fail.hang.teardown_comm"_verdict.in("fail.hang.teardown"));
  EXPECT_FALSE("xpass"_verdict.in("pass"));
  EXPECT_TRUE("pass.killed"_verdict.in("pass"));
}

TEST(Verdict, ExitCodesAreThoseOfTheDesign) {
  struct Row {
    Verdict verdict;
    int code;
  };
  const Row kRows[] = {
      {"pass"_verdict, 0},
      {"pass.rejected"_verdict, 0},
      {"xfail"_verdict, 0},
      {"pass.killed"_verdict, 0},
      {"skipped.gpus"_verdict, 0},
      {"skipped.arch"_verdict, 0},
      {"skipped.capability"_verdict, 0},
      {"fail.survived"_verdict, 1},
      {"fail.eager"_verdict, 1},
      {"fail.numerics"_verdict, 1},
      {"fail.isolation"_verdict, 1},
      {"fail.perf"_verdict, 1},
      {"flaky"_verdict, 1},
      {"xpass"_verdict, 1},
      {"infra.node"_verdict, 3},
      {"infra.preempted"_verdict, 3},
      {"unexercised"_verdict, 4},
      {"not_run"_verdict, 5},
  };
  for (const Row& row : kRows)
    EXPECT_EQ(value(row.verdict.exit_code()), row.code) << row.verdict.text();
  for (const VerdictRow& row : kVerdicts) {
    if (row.text.starts_with("fail.")) {
      EXPECT_EQ(row.exit_code, ExitCode::product) << row.text;
    }
    if (row.text.starts_with("infra.")) {
      EXPECT_EQ(row.exit_code, ExitCode::infrastructure) << row.text;
    }
  }
}

}  // namespace
}  // namespace graphproof::record
