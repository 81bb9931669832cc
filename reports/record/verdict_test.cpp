#include "reports/record/verdict.h"

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
  for (const char* text : {"", "fail", "fail.hang", "fail.hang.", "fail.hang.replayed", "Pass", "pass ", "skipped", "infra"})
    EXPECT_FALSE(Verdict::from(text)) << text;
}

TEST(Verdict, EachPhaseHasItsHang) {
  for (std::size_t i = 0; i < kPhaseCount; ++i)
    EXPECT_EQ(Verdict::hang(static_cast<Phase>(i)).text(), "fail.hang." + std::string(kPhaseNames[i]));
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
      {"pass"_verdict, 0}, {"pass.rejected"_verdict, 0}, {"xfail"_verdict, 0}, {"pass.killed"_verdict, 0},
      {"skipped.gpus"_verdict, 0}, {"skipped.arch"_verdict, 0}, {"skipped.capability"_verdict, 0},
      {"fail.survived"_verdict, 1}, {"fail.eager"_verdict, 1}, {"fail.numerics"_verdict, 1},
      {"fail.isolation"_verdict, 1}, {"fail.perf"_verdict, 1}, {"flaky"_verdict, 1}, {"xpass"_verdict, 1},
      {"infra.node"_verdict, 3}, {"infra.preempted"_verdict, 3}, {"unexercised"_verdict, 4}, {"not_run"_verdict, 5},
  };
  for (const Row& row : kRows) EXPECT_EQ(value(row.verdict.exit_code()), row.code) << row.verdict.text();
  for (const VerdictRow& row : kVerdicts) {
    if (row.text.starts_with("fail.")) { EXPECT_EQ(row.exit_code, ExitCode::product) << row.text; }
    if (row.text.starts_with("infra.")) { EXPECT_EQ(row.exit_code, ExitCode::infrastructure) << row.text; }
  }
}

TEST(ExitCode, TheStrongerOneWinsInEveryPair) {
  constexpr int kOrder[] = {6, 2, 5, 1, 4, 3, 0};
  for (std::size_t i = 0; i < std::size(kOrder); ++i)
    for (std::size_t j = i; j < std::size(kOrder); ++j) {
      const auto strong = static_cast<ExitCode>(kOrder[i]), weak = static_cast<ExitCode>(kOrder[j]);
      EXPECT_EQ(stronger(strong, weak), strong);
      EXPECT_EQ(stronger(weak, strong), strong);
    }
  EXPECT_EQ(strongest({}), ExitCode::ok);
  const ExitCode kMixed[] = {ExitCode::ok, ExitCode::infrastructure, ExitCode::product, ExitCode::coverage};
  EXPECT_EQ(strongest(kMixed), ExitCode::product);
}

TEST(ExitCode, EachHasAMeaning) {
  for (const ExitCode code : kExitPrecedence) EXPECT_FALSE(meaning(code).empty());
}

TEST(Phase, NamesAreReadBackAndOthersRefused) {
  for (std::size_t i = 0; i < kPhaseCount; ++i) EXPECT_EQ(phase_from(kPhaseNames[i]), static_cast<Phase>(i));
  EXPECT_FALSE(phase_from("Replay"));
  EXPECT_FALSE(phase_from(""));
}

TEST(Phase, LimitsOfStepsHoldPerStep) {
  EXPECT_TRUE(limited_per_step(Phase::eager) && limited_per_step(Phase::warmup) && limited_per_step(Phase::replay));
  EXPECT_FALSE(limited_per_step(Phase::capture) || limited_per_step(Phase::teardown_comm));
}

}  // namespace
}  // namespace graphproof::record
