#include "reports/print/compare_report.h"

#include <gtest/gtest.h>

#include <pugixml.hpp>

#include "reports/testing/healthy_case.h"

namespace graphproof::reports {
namespace {

using record::operator""_verdict;

Comparison example() {
  const RunResult before = mixed_run();
  RunResult now = mixed_run();
  now.run.stack.nccl_version = "2.29.2";
  now.cases[0].record.verdict = "fail.capture"_verdict;
  now.cases[0].plan.name = "a<b>|`c`\n# d";
  return compare(before, now);
}

TEST(CompareReport, TextHasTheStackFirstThenGatesThenWhatBroke) {
  const std::string text =
      compare_report(example(), parse_gates("broken,perf>3%"), CompareFormat::text);
  std::size_t at = 0;
  for (const char* part :
       {"20261121-101500-3f2a -> 20261121-101500-3f2a: 4 cases compared\n", "stack\n",
        "  NCCL  none                  2.29.2\n", "gates\n",
        "  broken   FAILED      cases acceptable before and failing now: 1, first a<b>",
        "  perf>3%  not judged  no time was measured in both runs\n",
        "broke (acceptable before, failing now): 1\n", "numbers\n  not compared: no case left",
        "times and memory\n", "coverage\n"}) {
    const std::size_t found = text.find(part, at);
    ASSERT_NE(found, std::string::npos) << part << "\n" << text;
    at = found;
  }
  EXPECT_EQ(text.find("\n# d"), std::string::npos);
}

TEST(CompareReport, MarkdownKeepsHostileNamesAsText) {
  const std::string text = compare_report(example(), {}, CompareFormat::markdown);
  EXPECT_TRUE(text.starts_with("# 20261121-101500-3f2a -\\> 20261121")) << text;
  EXPECT_NE(text.find("| part | 20261121-101500-3f2a |"), std::string::npos) << text;
  EXPECT_NE(text.find("a\\<b\\>\\|\\`c\\`"), std::string::npos) << text;
  EXPECT_EQ(text.find("\n# d"), std::string::npos) << text;
}

TEST(CompareReport, ThePageIsOneFileWithoutScriptsOrHosts) {
  const std::string page = compare_report(example(), {}, CompareFormat::html);
  EXPECT_NE(page.find("a&lt;b&gt;|`c`"), std::string::npos) << page;
  for (const char* absent : {"<script", "http://", "https://", "a<b>"})
    EXPECT_EQ(page.find(absent), std::string::npos) << absent;
  // Its elements are balanced, so an XML parser reads what follows the head.
  pugi::xml_document document;
  EXPECT_TRUE(document.load_string(
      page.substr(page.find("<body>"), page.find("</html>") - page.find("<body>")).c_str()));
}

TEST(CompareReport, ARunAgainstItselfSaysThatNothingChanged) {
  const std::string text =
      compare_report(compare(mixed_run(), mixed_run()), {}, CompareFormat::text);
  EXPECT_NE(text.find("stack\n  the same\ncases\n  no case changed\n"), std::string::npos) << text;
}

}  // namespace
}  // namespace graphproof::reports
