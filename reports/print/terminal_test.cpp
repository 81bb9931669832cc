#include "reports/print/terminal.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "reports/testing/healthy_case.h"

namespace graphproof::reports {
namespace {

using record::operator""_verdict;

std::size_t lines_of(const std::string& text) {
  return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
}

TEST(Progress, SaysWhereTheRunIsAndHowLongItTakes) {
  const Progress progress{.done = 12,
                          .planned = 48,
                          .running = 2,
                          .failed = 1,
                          .elapsed_seconds = 14,
                          .expected_done_seconds = 6,
                          .expected_left_seconds = 18,
                          .now = {"tp=2 replay", "tp=1 capture"}};
  EXPECT_EQ(
      live_block(progress, {.colour = false, .columns = 100}),
      (std::vector<std::string>{"[#####...............] 12/48  1 failed  0:14 elapsed  0:42 left",
                                "  tp=2 replay", "  tp=1 capture"}));
  EXPECT_EQ(live_block(progress, {.colour = true, .columns = 100})[0],
            "[#####...............] 12/48  \033[31m1 failed\033[0m  0:14 elapsed  0:42 left");
}

TEST(Progress, NamesSixRunningCasesAndCountsTheOthers) {
  const Progress progress{.planned = 48, .running = 9, .now = std::vector<std::string>(9, "tp=2")};
  const auto block = live_block(progress, {.colour = false, .columns = 100});
  ASSERT_EQ(block.size(), 8u);
  EXPECT_EQ(block.back(), "  and 3 more");
}

TEST(Progress, IsCutToTheTerminalsWidthAndNeverWraps) {
  const Progress progress{
      .done = 1, .planned = 48, .failed = 1, .now = {std::string(300, 'x') + "\x1b[2J"}};
  for (int columns = 1; columns < 120; ++columns) {
    for (const std::string& line : live_block(progress, {.colour = false, .columns = columns})) {
      EXPECT_LE(line.size(), static_cast<std::size_t>(columns)) << line;
      EXPECT_EQ(line.find('\x1b'), std::string::npos);
    }
  }
}

TEST(Progress, KnowsNoRemainingTimeBeforeTheFirstCaseAndNoneAfterTheLast) {
  EXPECT_FALSE(remaining_seconds(
      {.done = 0, .planned = 3, .elapsed_seconds = 5, .expected_left_seconds = 3}));
  EXPECT_EQ(remaining_seconds({.done = 3, .planned = 3, .elapsed_seconds = 5}), 0.0);
  EXPECT_EQ(remaining_seconds({.done = 1,
                               .planned = 3,
                               .elapsed_seconds = 5,
                               .expected_done_seconds = 2,
                               .expected_left_seconds = 4}),
            10.0);
  EXPECT_NE(live_block({.planned = 3}, {})[0].find("? left"), std::string::npos);
}

TEST(Clock, ReadsAsHoursMinutesSeconds) {
  const std::pair<double, const char*> kRows[] = {
      {0, "0:00"},
      {7.4, "0:07"},
      {59.6, "1:00"},
      {750, "12:30"},
      {11100, "3:05:00"},
      {-1, "0:00"},
      {std::numeric_limits<double>::infinity(), "0:00"}};
  for (const auto& [seconds, text] : kRows) EXPECT_EQ(clock_text(seconds), text);
}

std::string closing(const RunResult& run, const TerminalStyle& style = {.colour = false}) {
  static const matrix::Catalogue catalogue = matrix::load_catalogue();
  const CrossRunFacts known{.unknown = "There is no history."};
  return closing_table(
      run,
      overview(run, {.catalogue = catalogue,
                     .hazards = std::nullopt,
                     .cross_run = known,
                     .errors_of = [](const record::Record&) { return std::vector<ErrorFact>(); }}),
      style);
}

TEST(ClosingTable, ShowsEachWayToFailWithItsEvidenceAndTheCommandThatReproducesIt) {
  const std::string text = closing(mixed_run());
  EXPECT_TRUE(
      text.starts_with("1 case hangs in replay  fail.hang.replay  D01.lockstep\n"
                       "  case   5555555555555555  dp=2\n"
                       "  seen   step 3 differs\n"
                       "  got    0.25\n"
                       "  want   0.125\n"
                       "  why    a stale input\n"
                       "  try    "))
      << text;
  EXPECT_LT(text.find("1 case hangs"), text.find("1 case computes"));
  EXPECT_LT(text.find("1 case computes"), text.find("1 case leaves a required check"));
  for (const char digit : {'2', '3', '5'})
    EXPECT_NE(text.find("  repro  ./graphproof repro 20261121-101500-3f2a/" +
                        std::string(16, digit) + "\n"),
              std::string::npos);
  EXPECT_TRUE(text.ends_with(
      "\n\nNot acceptable: 2 of 5 cases fail in 2 ways. 1 of 1 planted fault caught by its "
      "detector. 1 case did not show what was required.\n"
      "verdicts: 1 fail.hang.replay, 1 fail.numerics, 1 pass, 1 pass.killed, 1 unexercised\n"
      "new: There is no history.\n"
      "coverage: 5 planned = 5 ran + 0 rejected + 0 skipped + 0 not run; 2 of 10 required checks "
      "unexercised\n"
      "exit 1: product failure (smoke on sim, 0:41, run 20261121-101500-3f2a)\n"))
      << text;
}

TEST(ClosingTable, OfLostEvidenceClaimsNoSuccess) {
  RunResult run = run_of({ended('1', "tp=2", "pass"_verdict, 90)});
  run.cases[0].record.checks.pass = 2;
  run.cases[0].checks.clear();
  const std::string text = closing(run);
  EXPECT_NE(text.find("Not shown: "), std::string::npos) << text;
  EXPECT_NE(text.find("The checks of 1 case are gone"), std::string::npos) << text;
  EXPECT_EQ(text.find("exit 0"), std::string::npos) << text;
}

TEST(ClosingTable, EscapesWhatRanksSay) {
  RunResult run = mixed_run();
  run.cases[2].record.reason = "\x1b]0;owned\x07";
  run.cases[2].record.failing[0].message.got = "\x1b[2J\nexit 0";
  run.cases[2].record.failing[0].check = "\x1b[3J";
  run.cases[2].plan.name = "\x1b[1m";
  run.cases[1].record.reason = "\x1b[2J";
  const std::string text = closing(run);
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
  EXPECT_EQ(text.find('\x07'), std::string::npos);
  EXPECT_EQ(text.find("\nexit 0"), std::string::npos);
}

TEST(ClosingTable, OfAThousandCasesFitsOnAScreen) {
  std::vector<CaseResult> cases(1000, ended('1', "a", "pass"_verdict, 90));
  for (int i = 0; i < 50; ++i) cases.push_back(ended('2', "b", "fail.silent"_verdict, 46));
  const std::string text = closing(run_of(cases));
  EXPECT_LT(lines_of(text), 24u) << text;
  EXPECT_TRUE(text.starts_with("50 cases end without a complete result  fail.silent")) << text;
  EXPECT_NE(text.find("  cases  2222222222222222  b\n"), std::string::npos) << text;
  EXPECT_NE(text.find("         and 46 more\n"), std::string::npos) << text;
}

TEST(ClosingTable, CountsTheWaysToFailThatItLeavesOut) {
  std::vector<CaseResult> cases;
  for (int i = 0; i < 26; ++i) {
    cases.push_back(ended(static_cast<char>('a' + i), "a", "fail.numerics"_verdict, 60));
    cases.back().record.failing[0].check = std::string("D01.") + static_cast<char>('a' + i);
  }
  const std::string text = closing(run_of(cases));
  EXPECT_NE(text.find("and 16 more ways to fail, on the page report.html\n"), std::string::npos)
      << text;
}

TEST(KillMatrix, HasARowPerFault) {
  const std::vector<record::FaultResult> rows = {
      {.fault = "M23",
       .detector = "D04",
       .killed_by = {"D04.learning_rate", "D01.lockstep"},
       .status = record::FaultStatus::killed,
       .clean_twin = "pass"_verdict},
      {.fault = "M15",
       .detector = "D18",
       .killed_by = {},
       .status = record::FaultStatus::unexercised,
       .clean_twin = "not_run"_verdict}};
  EXPECT_EQ(kill_matrix(rows, {.colour = false, .columns = 100}),
            "fault  detector  status       clean twin  failing checks\n"
            "M23    D04       killed       pass        D04.learning_rate, D01.lockstep\n"
            "M15    D18       unexercised  not_run     -\n");
  EXPECT_EQ(kill_matrix({}, {}), "");
  EXPECT_NE(kill_matrix(rows, {.colour = true}).find("\033[32mkilled"), std::string::npos);
}

}  // namespace
}  // namespace graphproof::reports
