#include "reports/print/junit.h"

#include <gtest/gtest.h>

#include <pugixml.hpp>

#include "reports/record/testing/scratch_folder.h"
#include "reports/record/text/file.h"
#include "reports/testing/healthy_case.h"

namespace graphproof::reports {
namespace {

using record::operator""_verdict;

constexpr const char* kRun = "20261121-101500-3f2a";

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
  const auto failed =
      suite.find_child_by_attribute("testcase", "name", "dropout=true [3333333333333333]");
  EXPECT_STREQ(failed.attribute("classname").value(), "graphproof.smoke");
  EXPECT_STREQ(failed.child("failure").attribute("type").value(), "fail.numerics");
  EXPECT_STREQ(failed.child("failure").attribute("message").value(), "because of fail.numerics");
  EXPECT_STREQ(
      failed.child("failure").text().get(),
      "D01.lockstep on rank 1: step 3 differs\n  got:  0.25\n  want: 0.125\n  why:  a stale input\n"
      "  next: look at the input\nreproduce: ./graphproof repro "
      "20261121-101500-3f2a/3333333333333333\n"
      "artefacts: cases/3333333333333333/attempt-1\n");
}

TEST(Junit, EachVerdictIsTheElementOfItsExitCode) {
  struct Row {
    record::Verdict verdict;
    int rule;
    const char* element;
  };
  const Row kRows[] = {
      {"pass"_verdict, 90, ""},
      {"pass.rejected"_verdict, 30, ""},
      {"xfail"_verdict, 86, ""},
      {"skipped.gpus"_verdict, 10, "skipped"},
      {"unexercised"_verdict, 11, "skipped"},
      {"unexercised"_verdict, 65, "failure"},
      {"fail.eager"_verdict, 89, "failure"},
      {"xpass"_verdict, 88, "failure"},
      {"infra.gpu"_verdict, 20, "error"},
      {"not_run"_verdict, 12, "error"},
      {"not_run"_verdict, 13, "error"},
  };
  for (const Row& row : kRows) {
    const RunResult run = run_of({ended('1', "a", row.verdict, row.rule)});
    Junit junit("smoke", kRun, plan_of(run));
    junit.add(run.cases[0].record);
    const auto document = parsed(junit.text());
    const auto test = document.child("testsuites").child("testsuite").child("testcase");
    EXPECT_STREQ(test.first_child().name(), row.element) << row.verdict.text();
  }
}

TEST(Junit, StaysXmlWhateverRanksSay) {
  RunResult run = run_of({ended('1', "a<b>&\"", "fail.numerics"_verdict, 60)});
  run.cases[0].record.reason = std::string("nul \0 esc \x1b \xff \xef\xbf\xbe ]]> <!-- ", 27);
  run.cases[0].record.failing[0].message.got = "\x01\x02</failure>\n]]>";
  Junit junit("smoke\x02", kRun, plan_of(run));
  junit.add(run.cases[0].record);
  const std::string text = junit.text();
  for (const char c : text)
    EXPECT_TRUE(c == '\n' || c == '\t' || static_cast<unsigned char>(c) >= 0x20);
  const auto document = parsed(text);
  EXPECT_NE(std::string(document.child("testsuites")
                            .child("testsuite")
                            .child("testcase")
                            .child("failure")
                            .text()
                            .get())
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
