#include "reports/outcome/summary.h"

#include <gtest/gtest.h>

#include "reports/record/schema/violations.h"
#include "reports/testing/healthy_case.h"

namespace graphproof::reports {
namespace {

using record::ExitCode;
using record::Result;
using record::operator""_verdict;

std::string text_of(const RunResult& run) {
  std::string text;
  put_summary(run, [&](std::string_view piece) { text += piece; });
  return text;
}

TEST(Summary, IsAsItsSchemaWants) {
  CaseResult killed = ended('3', "fault=M23", "pass.killed"_verdict, 81);
  for (const RunResult& run :
       {run_of({}), run_of({ended('1', "tp=2", "pass"_verdict, 90),
                            ended('2', "tp=1", "fail.numerics"_verdict, 60), killed, skipped('4'),
                            ended('5', "", "not_run"_verdict, 12)})}) {
    const auto value = nlohmann::json::parse(text_of(run));
    EXPECT_EQ(joined(record::violations("summary", value)), "");
    EXPECT_EQ(value.at("cases").size(), run.cases.size());
  }
}

TEST(Summary, CountsVerdictsAndCoverage) {
  CaseResult half = ended('2', "b", "unexercised"_verdict, 65);
  half.checks["D43.replays"] = Result::unexercised;
  const RunResult run = run_of({ended('1', "a", "pass"_verdict, 90), half,
                                ended('3', "c", "pass.rejected"_verdict, 30), skipped('4'),
                                ended('5', "e", "infra.gpu"_verdict, 20)});
  const record::Summary value = record::summary_from(nlohmann::json::parse(text_of(run)), "text");
  EXPECT_EQ(value.counts, (std::map<std::string, int>{{"infra.gpu", 1},
                                                      {"pass", 1},
                                                      {"pass.rejected", 1},
                                                      {"skipped.gpus", 1},
                                                      {"unexercised", 1}}));
  EXPECT_EQ(value.coverage, (record::Coverage{.planned = 5,
                                              .ran = 2,
                                              .rejected = 1,
                                              .skipped = 1,
                                              .not_run = 1,
                                              .required_checks = 4,
                                              .unexercised = 1}));
  EXPECT_TRUE(value.finished);
  ASSERT_EQ(value.cases.size(), 5u);
  EXPECT_EQ(value.cases[0].axes.at("impl"), "full_iteration");
  EXPECT_EQ(value.cases[0].checks.at("D01.lockstep"), Result::pass);
  record::Summary head = value;
  head.cases.clear();
  EXPECT_EQ(summary(run), head);
}

TEST(ExitCodeOfARun, IsNoSuccessIfTheEvidenceOfACaseIsLost) {
  RunResult run =
      run_of({ended('1', "a", "pass"_verdict, 90), ended('2', "b", "pass"_verdict, 90)});
  run.cases[1].record.checks.pass = 2;
  EXPECT_EQ(exit_code(run), ExitCode::ok);
  run.cases[1].checks.clear();  // its record counts two passes, but nothing shows them any more
  EXPECT_TRUE(lost_evidence(run.cases[1]));
  EXPECT_FALSE(lost_evidence(run.cases[0]));
  EXPECT_EQ(exit_code(run), ExitCode::coverage);
}

TEST(ExitCodeOfARun, IsTheStrongestOfItsCasesAndItsEnding) {
  struct Row {
    const char* name;
    std::vector<CaseResult> cases;
    Ending ending;
    ExitCode code;
  };
  const auto pass = ended('1', "a", "pass"_verdict, 90);
  const Row kRows[] = {
      {"all well", {pass, skipped('2')}, Ending::finished, ExitCode::ok},
      {"one failure",
       {pass, ended('2', "b", "fail.silent"_verdict, 46)},
       Ending::finished,
       ExitCode::product},
      {"unexercised",
       {pass, ended('2', "b", "unexercised"_verdict, 65)},
       Ending::finished,
       ExitCode::coverage},
      {"unexercised as planned",
       {pass, ended('2', "b", "unexercised"_verdict, 11)},
       Ending::finished,
       ExitCode::ok},
      {"failure and unexercised",
       {ended('1', "a", "xpass"_verdict, 88), ended('2', "b", "unexercised"_verdict, 65)},
       Ending::finished,
       ExitCode::product},
      {"only infrastructure",
       {ended('2', "b", "infra.node"_verdict, 20)},
       Ending::finished,
       ExitCode::infrastructure},
      {"infrastructure and coverage",
       {ended('1', "a", "infra.node"_verdict, 20), ended('2', "b", "unexercised"_verdict, 65)},
       Ending::finished,
       ExitCode::coverage},
      {"nothing selected", {}, Ending::finished, ExitCode::coverage},
      {"nothing ran", {skipped('2')}, Ending::finished, ExitCode::coverage},
      {"interrupted", {pass}, Ending::interrupted, ExitCode::interrupted},
      {"interrupted after a failure",
       {ended('1', "a", "fail.eager"_verdict, 89)},
       Ending::interrupted,
       ExitCode::interrupted},
      {"budget",
       {pass, ended('2', "b", "not_run"_verdict, 12)},
       Ending::budget,
       ExitCode::interrupted},
      {"circuit breaker",
       {ended('1', "a", "fail.eager"_verdict, 89), ended('2', "b", "not_run"_verdict, 13)},
       Ending::circuit_breaker,
       ExitCode::product},
      {"max fail without a failure",
       {pass, ended('2', "b", "not_run"_verdict, 13)},
       Ending::max_fail,
       ExitCode::coverage},
      {"disk full",
       {pass, ended('2', "b", "infra.disk"_verdict, 14)},
       Ending::disk,
       ExitCode::infrastructure},
      {"disk full after a failure",
       {ended('1', "a", "fail.eager"_verdict, 89), ended('2', "b", "infra.disk"_verdict, 14)},
       Ending::disk,
       ExitCode::product},
  };
  for (const Row& row : kRows)
    EXPECT_EQ(exit_code(run_of(row.cases, row.ending)), row.code) << row.name;
}

}  // namespace
}  // namespace graphproof::reports
