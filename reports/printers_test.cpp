// Markdown, JUnit and terminal: what a reader sees of the same run.
#include <gtest/gtest.h>

#include <pugixml.hpp>

#include "reports/faults.h"
#include "reports/healthy_case.h"
#include "reports/junit.h"
#include "reports/markdown.h"
#include "reports/order.h"
#include "reports/printable.h"
#include "reports/record/file.h"
#include "reports/record/scratch_folder.h"
#include "reports/terminal.h"

namespace graphproof::reports {
namespace {

using record::operator""_verdict;

const char* const kRun = "20261121-101500-3f2a";

RunResult mixed_run() {
  CaseResult killed = ended('4', "fault=M23", "pass.killed"_verdict, 81);
  killed.plan.expect = {.kind = "fault", .fault = "M23", .detector = "D04", .clean_twin = std::string(16, '1')};
  killed.checks = {{"D04.learning_rate", record::Result::fail}};
  return run_of({ended('1', "tp=2", "pass"_verdict, 90), ended('2', "tp=1", "unexercised"_verdict, 65),
                 ended('3', "dropout=true", "fail.numerics"_verdict, 60), killed, ended('5', "dp=2", "fail.hang.replay"_verdict, 40)});
}

std::size_t lines_of(const std::string& text) { return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n')); }

TEST(Printable, LetsNoControlCharacterThrough) {
  struct Row {
    std::string text, want;
  };
  const Row kRows[] = {
      {"plain, \"quoted\" & <tagged>", "plain, \"quoted\" & <tagged>"},
      {"\x1b[31mred", "\\x1b[31mred"},
      {"a\nb\tc\rd", "a\\x0ab\\x09c\\x0dd"},
      {std::string("a\0b", 3), "a\\x00b"},
      {"\x7f", "\\x7f"},
      {"\xc2\x9b" "31m", "\\xc2\\x9b31m"},  // C1, a one-character escape sequence
      {"h\xc3\xa9", "h\xc3\xa9"},
      {"\xff\xfe", "\\xff\\xfe"},
      {"\xc0\x80", "\\xc0\\x80"},              // overlong
      {"\xed\xa0\x80", "\\xed\\xa0\\x80"},    // surrogate
      {"\xef\xbf\xbf", "\\xef\\xbf\\xbf"},    // forbidden in XML
      {"\xe2\x82", "\\xe2\\x82"},              // cut off
      {"\xf0\x9f\x98\x80", "\xf0\x9f\x98\x80"},
  };
  for (const Row& row : kRows) EXPECT_EQ(printable(row.text), row.want);
}

TEST(Order, PutsProductFailuresFirstAndTheWorstOfThemOnTop) {
  const RunResult run = mixed_run();
  const auto failures = failures_first(run);
  ASSERT_EQ(failures.size(), 3u);
  EXPECT_EQ(failures[0]->record.verdict, "fail.hang.replay"_verdict);
  EXPECT_EQ(failures[1]->record.verdict, "fail.numerics"_verdict);
  EXPECT_EQ(failures[2]->record.verdict, "unexercised"_verdict);
  EXPECT_EQ(acceptable(run).size(), 2u);
}

// ---- terminal --------------------------------------------------------------------------------------------------------

TEST(Progress, SaysWhereTheRunIsAndHowLongItTakes) {
  const Progress progress{.done = 12, .planned = 48, .running = 2, .failed = 1, .elapsed_seconds = 14,
                          .expected_done_seconds = 6, .expected_left_seconds = 18, .now = "tp=2 replay"};
  EXPECT_EQ(progress_line(progress, {.colour = false, .columns = 100}),
            "[12/48] 1 failed  2 running  0:14 elapsed  0:42 left  tp=2 replay");
  EXPECT_EQ(progress_line(progress, {.colour = true, .columns = 100}),
            "[12/48] \033[31m1 failed\033[0m  2 running  0:14 elapsed  0:42 left  tp=2 replay");
}

TEST(Progress, IsCutToTheTerminalsWidthAndNeverWraps) {
  const Progress progress{.done = 1, .planned = 48, .failed = 1, .now = std::string(300, 'x') + "\x1b[2J"};
  for (int columns = 1; columns < 120; ++columns) {
    const std::string line = progress_line(progress, {.colour = false, .columns = columns});
    EXPECT_EQ(line.size(), static_cast<std::size_t>(columns)) << line;
    EXPECT_EQ(line.find('\x1b'), std::string::npos);
  }
}

TEST(Progress, KnowsNoRemainingTimeBeforeTheFirstCaseAndNoneAfterTheLast) {
  EXPECT_FALSE(remaining_seconds({.done = 0, .planned = 3, .elapsed_seconds = 5, .expected_left_seconds = 3}));
  EXPECT_EQ(remaining_seconds({.done = 3, .planned = 3, .elapsed_seconds = 5}), 0.0);
  EXPECT_EQ(remaining_seconds({.done = 1, .planned = 3, .elapsed_seconds = 5, .expected_done_seconds = 2, .expected_left_seconds = 4}), 10.0);
  EXPECT_NE(progress_line({.planned = 3}, {}).find("? left"), std::string::npos);
}

TEST(Clock, ReadsAsHoursMinutesSeconds) {
  const std::pair<double, const char*> kRows[] = {{0, "0:00"}, {7.4, "0:07"}, {59.6, "1:00"}, {750, "12:30"}, {11100, "3:05:00"},
                                                  {-1, "0:00"}, {std::numeric_limits<double>::infinity(), "0:00"}};
  for (const auto& [seconds, text] : kRows) EXPECT_EQ(clock_text(seconds), text);
}

TEST(ClosingTable, ShowsFailuresFirstWithTheirPartsAndTheCommandThatReproducesThem) {
  const std::string text = closing_table(mixed_run(), {.colour = false, .columns = 80});
  EXPECT_EQ(text.substr(0, text.find("\n\n")),
            "fail.hang.replay  5555555555555555  dp=2\n"
            "  because of fail.hang.replay\n"
            "    D01.lockstep on rank 1: step 3 differs\n"
            "      got   0.25\n"
            "      want  0.125\n"
            "      why   a stale input\n"
            "      next  look at the input\n"
            "  ./graphproof repro 20261121-101500-3f2a/5555555555555555");
  EXPECT_LT(text.find("5555555555555555"), text.find("3333333333333333"));
  EXPECT_LT(text.find("3333333333333333"), text.find("1111111111111111"));
  for (const char digit : {'2', '3', '5'})
    EXPECT_NE(text.find("./graphproof repro 20261121-101500-3f2a/" + std::string(16, digit)), std::string::npos);
  EXPECT_TRUE(text.ends_with("coverage: 5 planned = 5 ran + 0 rejected + 0 skipped + 0 not run; 2 of 10 required checks unexercised\n"
                             "exit 1: product failure (smoke on sim, 0:41, run 20261121-101500-3f2a)\n"))
      << text;
}

TEST(ClosingTable, HasAlignedColumnsThatFit) {
  const std::string text = closing_table(mixed_run(), {.colour = false, .columns = 60});
  const std::size_t begin = text.find("verdict  ");
  ASSERT_NE(begin, std::string::npos) << text;
  const std::string table = text.substr(begin, text.find("\n\n", begin) - begin);
  const std::size_t column = table.find("case");
  std::size_t row = 0;
  for (std::size_t at = 0; at != std::string::npos && at < table.size(); at = table.find('\n', at + 1), ++row) {
    const std::string line = table.substr(at + (row > 0), table.find('\n', at + 1) - at - (row > 0));
    EXPECT_LE(line.size(), 60u) << line;
    EXPECT_EQ(line[column - 1], ' ') << line;
    EXPECT_NE(line[column], ' ') << line;
  }
  EXPECT_EQ(row, 6u) << table;
}

TEST(ClosingTable, EscapesWhatRanksSay) {
  RunResult run = mixed_run();
  run.cases[2].record.reason = "\x1b]0;owned\x07";
  run.cases[2].record.failing[0].message.got = "\x1b[2J\nexit 0";
  run.cases[2].plan.name = "\x1b[1m";
  const std::string text = closing_table(run, {.colour = false, .columns = 80});
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
  EXPECT_EQ(text.find('\x07'), std::string::npos);
  EXPECT_EQ(text.find("\nexit 0"), std::string::npos);
}

TEST(ClosingTable, OfAThousandCasesShowsWhatMatters) {
  std::vector<CaseResult> cases(1000, ended('1', "a", "pass"_verdict, 90));
  for (int i = 0; i < 50; ++i) cases.push_back(ended('2', "b", "fail.silent"_verdict, 46));
  const std::string text = closing_table(run_of(cases), {});
  EXPECT_LT(lines_of(text), 350u);
  EXPECT_NE(text.find("... and 960 more acceptable cases, in summary.json"), std::string::npos);
}

TEST(KillMatrix, HasARowPerFault) {
  const std::vector<record::FaultResult> rows = {
      {.fault = "M23", .detector = "D04", .killed_by = {"D04.learning_rate", "D01.lockstep"}, .status = record::FaultStatus::killed,
       .clean_twin = "pass"_verdict},
      {.fault = "M15", .detector = "D18", .killed_by = {}, .status = record::FaultStatus::unexercised, .clean_twin = "not_run"_verdict}};
  EXPECT_EQ(kill_matrix(rows, {.colour = false, .columns = 100}),
            "fault  detector  status       clean twin  failing checks\n"
            "M23    D04       killed       pass        D04.learning_rate, D01.lockstep\n"
            "M15    D18       unexercised  not_run     -\n");
  EXPECT_EQ(kill_matrix({}, {}), "");
  EXPECT_NE(kill_matrix(rows, {.colour = true}).find("\033[32mkilled"), std::string::npos);
}

// ---- Markdown --------------------------------------------------------------------------------------------------------

TEST(Markdown, StartsWithTheVerdictsAndHasFailuresBeforeTheRest) {
  const std::string text = markdown(mixed_run());
  EXPECT_TRUE(text.starts_with("# graphproof smoke on sim\n\nRun `20261121-101500-3f2a`, 41.2 s. Exit code 1: product failure.\n\n"
                               "| verdict | cases |\n| --- | --- |\n| `fail.hang.replay` | 1 |\n"))
      << text;
  const char* const kOrder[] = {"## Failures", "### `fail.hang.replay` `dp=2`", "### `fail.numerics` `dropout=true`",
                                "### `unexercised` `tp=1`", "## Kill matrix", "## Slowest cases", "## Stack"};
  std::size_t at = 0;
  for (const char* part : kOrder) {
    const std::size_t found = text.find(part);
    ASSERT_NE(found, std::string::npos) << part << "\n" << text;
    EXPECT_GT(found, at) << part;
    at = found;
  }
  EXPECT_NE(text.find("- **D01.lockstep on rank 1**: step 3 differs\n  - got: 0.25\n  - want: 0.125\n  - why: a stale input\n"
                      "  - next: `look at the input`\n\n```\n./graphproof repro 20261121-101500-3f2a/5555555555555555\n```"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("| M23 | D04 | killed | `D04.learning_rate` | `pass` |"), std::string::npos) << text;
}

TEST(Markdown, SaysThatARunDidNotFinish) {
  const std::string text = markdown(run_of({ended('1', "a", "pass"_verdict, 90)}, Ending::interrupted));
  EXPECT_NE(text.find("**The run did not finish.** `./graphproof resume 20261121-101500-3f2a` continues it."), std::string::npos) << text;
}

TEST(Markdown, MarkupInMessagesStaysText) {
  RunResult run = mixed_run();
  run.cases[2].record.failing[0].message = {.what = "a|b <script> *c*", .got = "x\n# Heading", .want = "[link](http://x)", .why = "",
                                            .next = "run `x|y`"};
  const std::string text = markdown(run);
  EXPECT_NE(text.find("a\\|b \\<script\\> \\*c\\*"), std::string::npos) << text;
  EXPECT_EQ(text.find("\n# Heading"), std::string::npos);
  EXPECT_EQ(text.find("[link]"), std::string::npos);
  EXPECT_NE(text.find("`run 'x\\|y'`"), std::string::npos) << text;
}

// ---- JUnit -----------------------------------------------------------------------------------------------------------

pugi::xml_document parsed(const std::string& text) {
  pugi::xml_document document;
  const auto result = document.load_string(text.c_str());
  EXPECT_TRUE(result) << result.description() << "\n" << text;
  return document;
}

std::vector<record::PlanLine> plan_of(const RunResult& run) {
  std::vector<record::PlanLine> plan;
  for (const CaseResult& one : run.cases) plan.push_back(one.plan);
  return plan;
}

TEST(Junit, BeforeTheFirstVerdictSaysOfEveryCaseThatItDidNotFinish) {
  const Junit junit("smoke", kRun, plan_of(mixed_run()));
  const auto document = parsed(junit.text());
  const auto suite = document.child("testsuites").child("testsuite");
  EXPECT_STREQ(suite.attribute("tests").value(), "5");
  EXPECT_STREQ(suite.attribute("errors").value(), "5");
  int cases = 0;
  for (const auto test : suite.children("testcase")) {
    EXPECT_STREQ(test.child("error").attribute("message").value(), "did not finish");
    ++cases;
  }
  EXPECT_EQ(cases, 5);
}

TEST(Junit, VerdictsReplaceThatOneByOne) {
  const RunResult run = mixed_run();
  Junit junit("smoke", kRun, plan_of(run));
  for (std::size_t i = 0; i + 1 < run.cases.size(); ++i) junit.add(run.cases[i].record);
  const auto document = parsed(junit.text());
  const auto suite = document.child("testsuites").child("testsuite");
  EXPECT_STREQ(suite.attribute("failures").value(), "2");
  EXPECT_STREQ(suite.attribute("errors").value(), "1");
  EXPECT_STREQ(suite.attribute("time").value(), "1.600");
  const auto failed = suite.find_child_by_attribute("testcase", "name", "dropout=true [3333333333333333]");
  EXPECT_STREQ(failed.attribute("classname").value(), "graphproof.smoke");
  EXPECT_STREQ(failed.child("failure").attribute("type").value(), "fail.numerics");
  EXPECT_STREQ(failed.child("failure").attribute("message").value(), "because of fail.numerics");
  EXPECT_STREQ(failed.child("failure").text().get(),
               "D01.lockstep on rank 1: step 3 differs\n  got:  0.25\n  want: 0.125\n  why:  a stale input\n"
               "  next: look at the input\nreproduce: ./graphproof repro 20261121-101500-3f2a/3333333333333333\n"
               "artefacts: cases/3333333333333333/attempt-1\n");
}

TEST(Junit, EachVerdictIsTheElementOfItsExitCode) {
  struct Row {
    record::Verdict verdict;
    int rule;
    const char* element;
  };
  const Row kRows[] = {{"pass"_verdict, 90, ""},           {"pass.rejected"_verdict, 30, ""},     {"xfail"_verdict, 86, ""},
                       {"skipped.gpus"_verdict, 10, "skipped"}, {"unexercised"_verdict, 11, "skipped"}, {"unexercised"_verdict, 65, "failure"},
                       {"fail.eager"_verdict, 89, "failure"}, {"xpass"_verdict, 88, "failure"},    {"infra.gpu"_verdict, 20, "error"},
                       {"not_run"_verdict, 12, "error"},    {"not_run"_verdict, 13, "error"}};
  for (const Row& row : kRows) {
    const RunResult run = run_of({ended('1', "a", row.verdict, row.rule)});
    Junit junit("smoke", kRun, plan_of(run));
    junit.add(run.cases[0].record);
    const auto document = parsed(junit.text());
    EXPECT_STREQ(document.child("testsuites").child("testsuite").child("testcase").first_child().name(), row.element) << row.verdict.text();
  }
}

TEST(Junit, StaysXmlWhateverRanksSay) {
  RunResult run = run_of({ended('1', "a<b>&\"", "fail.numerics"_verdict, 60)});
  run.cases[0].record.reason = std::string("nul \0 esc \x1b \xff \xef\xbf\xbe ]]> <!-- ", 32);
  run.cases[0].record.failing[0].message.got = "\x01\x02</failure>\n]]>";
  Junit junit("smoke\x02", kRun, plan_of(run));
  junit.add(run.cases[0].record);
  const std::string text = junit.text();
  for (const char c : text) EXPECT_TRUE(c == '\n' || c == '\t' || static_cast<unsigned char>(c) >= 0x20);
  const auto document = parsed(text);
  EXPECT_NE(std::string(document.child("testsuites").child("testsuite").child("testcase").child("failure").text().get())
                .find("\\x01\\x02</failure>\\x0a]]>"),
            std::string::npos);
}

TEST(Junit, IsReplacedWholeAndAFullDiskKeepsTheOldFile) {
  const record::ScratchFolder folder;
  const auto file = folder.path() / "junit.xml";
  const RunResult run = run_of(std::vector<CaseResult>(100, ended('1', "a", "pass"_verdict, 90)));
  Junit junit("smoke", kRun, plan_of(run));
  junit.write(file);
  const std::string before = record::read_text(file);
  junit.add(run.cases[0].record);
  {
    const record::FullDisk full(1000);
    try {
      junit.write(file);
      FAIL() << "no error";
    } catch (const record::WriteError& error) {
      EXPECT_EQ(error.message().what, "cannot write " + file.string());
    }
  }
  EXPECT_EQ(record::read_text(file), before);
  junit.write(file);
  EXPECT_NE(record::read_text(file), before);
  EXPECT_EQ(folder.names(), std::vector<std::string>{"junit.xml"});
}

}  // namespace
}  // namespace graphproof::reports
