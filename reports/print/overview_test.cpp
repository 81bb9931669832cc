#include "reports/print/overview.h"

#include <gtest/gtest.h>

#include "reports/testing/healthy_case.h"

namespace graphproof::reports {
namespace {

using record::operator""_verdict;

Overview words_of(const RunResult& run, const std::optional<record::Hazards>& hazards = {},
                  const CrossRunFacts& known = {.unknown = "There is no history."},
                  const std::vector<ErrorFact>& errors = {}) {
  static const matrix::Catalogue catalogue = matrix::load_catalogue();
  return overview(run, {.catalogue = catalogue,
                        .hazards = hazards,
                        .cross_run = known,
                        .errors_of = [&](const record::Record&) { return errors; }});
}

/// The lines of a group as "label: code text".
std::string lines_of(const OverviewGroup& group) {
  std::string text;
  for (const OverviewLine& one : group.lines)
    text += one.label + ": " + one.code + (one.code.empty() || one.text.empty() ? "" : " | ") +
            one.text + "\n";
  return text;
}

/// Six cases with expandable segments that hang as the plan expects, and six without that pass.
RunResult hanging_run() {
  RunResult run = run_of({});
  for (int i = 0; i < 12; ++i) {
    const bool hangs = i % 2 == 0;
    CaseResult one = ended(static_cast<char>('a' + i), "case " + std::to_string(i),
                           hangs ? "xfail"_verdict : "pass"_verdict, 84);
    one.plan.axes = {{"allocator", hangs ? "expandable" : "default"}, {"tp", 1 << (i % 3)}};
    if (hangs) {
      one.record.observed = "fail.hang.replay"_verdict;
      one.plan.expect = {.kind = "hazard", .rule = "H01", .verdict = "fail.hang"};
    }
    run.cases.push_back(one);
  }
  return run;
}

record::Hazards cures(const RunResult& run, int passing) {
  record::Hazards all{.run_id = "r", .device = "cuda", .nccl_version = "2.28.9", .cells = {}};
  for (const CaseResult& one : run.cases) {
    record::HazardCell cell{.case_id = one.plan.id};
    if (one.record.verdict.in("xfail"))
      cell.cure = record::HazardCure{
          .setting = "NCCL_GRAPH_REGISTER=0",
          .case_id = "x",
          .verdict = passing-- > 0 ? "pass"_verdict : "fail.hang.replay"_verdict};
    all.cells.push_back(cell);
  }
  return all;
}

TEST(Overview, AHazardIsSaidWithItsPlaceAndItsCure) {
  const RunResult run = hanging_run();
  const Overview words = words_of(run, cures(run, 6));
  EXPECT_EQ(words.word, "Acceptable");
  EXPECT_EQ(words.sentence, "6 of 12 cases ended well. 6 cases fail, as the plan expects.");
  ASSERT_EQ(words.groups.size(), 1u);
  EXPECT_EQ(words.groups[0].kind, Kind::expected);
  EXPECT_EQ(words.groups[0].headline, "6 cases hang in replay");
  EXPECT_EQ(lines_of(words.groups[0]),
            "where: allocator == expandable | all 6 such cases, 0 of 6 others\n"
            "seen: because of xfail\n"
            "known: ranks disagree on whether the buffers of a captured collective are registered\n"
            "cure: NCCL_GRAPH_REGISTER=0 | With it all 6 pass.\n"
            "repro: ./graphproof repro 20261121-101500-3f2a/aaaaaaaaaaaaaaaa\n");
  EXPECT_NE(lines_of(words_of(run, cures(run, 4)).groups[0]).find("With it 4 of 6 pass."),
            std::string::npos);
}

TEST(Overview, AFailureHasItsEvidenceItsCauseAndSinceWhenItFails) {
  RunResult run =
      run_of({ended('1', "a", "pass"_verdict, 90), ended('3', "b", "fail.numerics"_verdict, 60)});
  run.cases[1].record.failing.push_back(
      {.check = "D07.static_addresses", .rank = 0, .message = {.what = "it moved"}});
  CrossRunFacts known{.unknown = "", .last_run = "r2", .broke = {1}};
  known.stack_changes = {{"NCCL", "2.28", "2.29"}};
  const HistoryResult bad{.run_id = "r1", .started = "2026-11-01"};
  known.failing[1] = {.case_id = "", .name = "", .results = {bad}, .first_bad = bad};
  const Overview words = words_of(run, {}, known);
  EXPECT_EQ(words.word, "Not acceptable");
  EXPECT_EQ(words.sentence, "1 of 2 cases fails in 1 way.");
  EXPECT_EQ(words.news,
            (std::vector<std::string>{"since run r2", "1 case broke", "NCCL 2.28 -> 2.29"}));
  EXPECT_EQ(lines_of(words.groups[0]),
            "case: 3333333333333333 | b\n"
            "seen: step 3 differs\ngot: 0.25\nwant: 0.125\nwhy: a stale input\n"
            "cure: copy into the captured tensor (an input was replaced instead of copied into, or "
            "a weight was rebound; D07.static_addresses failed)\n"
            "since: run r1\n"
            "repro: ./graphproof repro 20261121-101500-3f2a/3333333333333333\n");
  known.failing[1].first_bad->run_id = run.run.run_id;
  EXPECT_NE(lines_of(words_of(run, {}, known).groups[0]).find("since: this run\n"),
            std::string::npos);
}

TEST(Overview, AFixWhoseCheckDidNotFailIsOnlyATry) {
  const Overview words =
      words_of(run_of({ended('1', "a", "fail.capture"_verdict, 60)}), {}, {.unknown = "no"},
               {{.type = "cuda", .call = "c", .message = "m", .code = 900}});
  const std::string lines = lines_of(words.groups[0]);
  EXPECT_NE(lines.find("try: "), std::string::npos) << lines;
  EXPECT_NE(lines.find("(most common: "), std::string::npos) << lines;
  EXPECT_EQ(lines.find("cure: "), std::string::npos) << lines;
}

TEST(Overview, WhatARankWroteIsShortenedBetweenCharacters) {
  RunResult run = run_of({ended('1', "a", "fail.numerics"_verdict, 60)});
  std::string long_text = "x";
  while (long_text.size() < 100'000) long_text += "\xC3\xA4";
  run.cases[0].record.failing[0].message.got = long_text;
  const std::string lines = lines_of(words_of(run).groups[0]);
  EXPECT_LT(lines.size(), 1500u);
  EXPECT_NE(lines.find("\xC3\xA4 ...\n"), std::string::npos) << lines;
}

TEST(Overview, TheWordFollowsTheExitCode) {
  const CaseResult pass = ended('1', "a", "pass"_verdict, 90);
  CaseResult lost = pass;
  lost.record.checks.pass = 3;
  lost.checks.clear();
  const auto planted = [](char digit, record::Verdict verdict) {
    CaseResult one = ended(digit, "c", verdict, 81);
    one.plan.expect = {.kind = "fault",
                       .fault = std::string("M2") + digit,
                       .detector = "D04",
                       .clean_twin = std::string(16, '1')};
    one.checks = {{"D04.learning_rate", record::Result::fail}};
    return one;
  };
  struct Row {
    RunResult run;
    Kind kind;
    std::string word, sentence;
  };
  const Row rows[] = {
      {run_of({pass, skipped('8')}), Kind::ok, "Acceptable",
       "1 of 2 cases ended well. 1 case skipped."},
      {run_of({pass, ended('2', "b", "infra.gpu"_verdict, 20)}), Kind::infra, "Not judged",
       "Only the infrastructure failed. 1 case met trouble of the infrastructure."},
      {run_of({pass, ended('2', "b", "unexercised"_verdict, 65)}), Kind::coverage, "Not shown",
       "No failure, but not everything that was required was seen. 1 case did not show what was "
       "required."},
      {run_of({pass, ended('2', "b", "not_run"_verdict, 12)}, Ending::interrupted),
       Kind::interrupted, "Not finished",
       "The run was interrupted; ./graphproof resume 20261121-101500-3f2a goes on with it."},
      {run_of({pass, ended('2', "b", "not_run"_verdict, 12)}, Ending::budget), Kind::interrupted,
       "Not finished",
       "The run was interrupted; ./graphproof resume 20261121-101500-3f2a goes on with it. The run "
       "did not finish (budget)."},
      {run_of({pass, planted('4', "pass.killed"_verdict), planted('5', "unexercised"_verdict)}),
       Kind::coverage, "Not shown",
       "No failure, but not everything that was required was seen. 1 of 2 planted faults caught by "
       "its detector, 1 not tried here. 1 case did not show what was required."},
      {run_of({lost}), Kind::coverage, "Not shown",
       "No failure, but not everything that was required was seen. The checks of 1 case are gone "
       "(their folders have no checks.json), so nothing shows any more that their verdicts are "
       "right; where the evidence is left, report --judge-again helps."}};
  for (const Row& row : rows) {
    const Overview words = words_of(row.run);
    EXPECT_EQ(words.word, row.word);
    EXPECT_EQ(words.kind, row.kind) << row.word;
    EXPECT_EQ(words.sentence, row.sentence);
  }
  EXPECT_TRUE(coverage_text(run_of({lost})).ends_with("2 required checks can no longer be shown"))
      << coverage_text(run_of({lost}));
}

TEST(Overview, EveryVerdictOfAFailureHasADeedOfItsOwn) {
  for (const record::VerdictRow& row : record::kVerdicts) {
    const record::Verdict verdict = *record::Verdict::from(row.text);
    const std::string one = deed(verdict, 1), many = deed(verdict, 2);
    EXPECT_NE(one, "");
    EXPECT_EQ(one.find('%'), std::string::npos) << one;
    if (verdict.in("fail")) {
      EXPECT_EQ(one.find(row.text), std::string::npos) << one << " is no sentence";
      EXPECT_NE(one, many);
    }
  }
  EXPECT_EQ(deed("fail.hang.capture"_verdict, 1), "hangs in capture");
  EXPECT_EQ(deed("fail.crash.cuda"_verdict, 2), "crash (cuda)");
  EXPECT_EQ(deed("pass"_verdict, 2), "end pass");
}

}  // namespace
}  // namespace graphproof::reports
