#include "reports/print/markdown.h"

#include <gtest/gtest.h>

#include "reports/testing/healthy_case.h"

namespace graphproof::reports {
namespace {

using record::operator""_verdict;

std::string page(const RunResult& run, const std::string& hazards = "") {
  static const matrix::Catalogue catalogue = matrix::load_catalogue();
  const CrossRunFacts known{.unknown = "There is no history."};
  return markdown(
      run,
      overview(run, {.catalogue = catalogue,
                     .hazards = std::nullopt,
                     .cross_run = known,
                     .errors_of = [](const record::Record&) { return std::vector<ErrorFact>(); }}),
      hazards);
}

TEST(Markdown, StartsWithTheVerdictsAndHasFailuresBeforeTheRest) {
  const std::string text = page(mixed_run());
  EXPECT_TRUE(text.starts_with(
      "# graphproof smoke on sim\n\n**Not acceptable.** 2 of 5 cases fail in 2 "
      "ways. 1 of 1 planted fault caught by its detector. 1 case did not show what "
      "was required. Run `20261121-101500-3f2a`, 41.2 s. Exit code 1: product "
      "failure.\n\n"
      "| verdict | cases |\n| --- | --- |\n| `fail.hang.replay` | 1 |\n"))
      << text;
  const char* const kOrder[] = {"\nNew: There is no history.\n",
                                "## Failures by cause",
                                "### 1 case hangs in replay `D01.lockstep`\n\n- case: "
                                "`5555555555555555` dp=2\n- seen: step 3 differs\n- got: 0.25\n",
                                "## Failures\n",
                                "### `fail.hang.replay` `dp=2`",
                                "### `fail.numerics` `dropout=true`",
                                "### `unexercised` `tp=1`",
                                "## Kill matrix",
                                "## Stack",
                                "## Slowest cases"};
  std::size_t at = 0;
  for (const char* part : kOrder) {
    const std::size_t found = text.find(part);
    ASSERT_NE(found, std::string::npos) << part << "\n" << text;
    EXPECT_GT(found, at) << part;
    at = found;
  }
  EXPECT_NE(text.find("- **D01.lockstep on rank 1**: step 3 differs\n  - got: 0.25\n  - want: "
                      "0.125\n  - why: a stale input\n"
                      "  - next: `look at the input`\n\n```\n./graphproof repro "
                      "20261121-101500-3f2a/5555555555555555\n```"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("| M23 | D04 | killed | `D04.learning_rate` | `pass` |"), std::string::npos)
      << text;
}

TEST(Markdown, SaysThatARunDidNotFinish) {
  const std::string text =
      page(run_of({ended('1', "a", "pass"_verdict, 90), ended('2', "b", "not_run"_verdict, 12)},
                  Ending::interrupted));
  EXPECT_NE(text.find("**Not finished.** The run was interrupted"), std::string::npos) << text;
  EXPECT_NE(text.find("Exit code 5: interrupted, resumable."), std::string::npos) << text;
}

TEST(Markdown, MarkupInMessagesStaysText) {
  RunResult run = mixed_run();
  run.cases[2].record.failing[0].message = {.what = "a|b <script> *c*",
                                            .got = "x\n# Heading",
                                            .want = "[link](http://x)",
                                            .why = "",
                                            .next = "run `x|y`"};
  const std::string text = page(run);
  EXPECT_NE(text.find("a\\|b \\<script\\> \\*c\\*"), std::string::npos) << text;
  EXPECT_EQ(text.find("\n# Heading"), std::string::npos);
  EXPECT_EQ(text.find("[link]"), std::string::npos);
  EXPECT_NE(text.find("`run 'x\\|y'`"), std::string::npos) << text;
}

TEST(Markdown, FitsIntoAPullRequestWhateverFails) {
  std::vector<CaseResult> cases;
  for (int i = 0; i < 200; ++i) {
    CaseResult one = ended('1', "case " + std::to_string(i), "fail.numerics"_verdict, 60);
    one.record.failing[0].message.got = std::string(3000, 'x');
    cases.push_back(one);
  }
  cases[0].record.failing[0].message.got = std::string(100'000, 'x');
  const std::string hazards = "## Hazards\n\n" + std::string(40'000, 'h');
  const std::string text = page(run_of(cases), hazards);
  EXPECT_LE(text.size(), kMarkdownLimit);
  EXPECT_NE(text.find("the messages are too long for this page"), std::string::npos);
  EXPECT_NE(text.find("## Failures"), std::string::npos);
  EXPECT_NE(text.find(" more; summary.json lists all."), std::string::npos);
  EXPECT_NE(text.find("## Stack"), std::string::npos);
  EXPECT_NE(text.find("Left out, because the page would be too long: the hazards.\n"),
            std::string::npos)
      << text.substr(text.size() - 300);
}

TEST(Markdown, TheBenefitOfGraphsComesLastAndIsShort) {
  std::vector<CaseResult> cases;
  for (int i = 0; i < 84; ++i) {
    CaseResult one = ended('1', "case " + std::to_string(i), "pass"_verdict, 90);
    one.record.figures = {{"eager_step_ms", 10.0 + i},
                          {"graph_step_ms", 10},
                          {"capture_seconds", 0.01},
                          {"graphs", 1},
                          {"extra_memory_bytes", 0}};
    one.plan.id = one.record.case_id = "case-" + std::to_string(i);
    one.plan.axes = {{"tp", i < 42 ? 1 : 2}, {"impl", "local"}};
    cases.push_back(one);
  }
  const std::string text = page(run_of(cases), "## Hazards\n");
  EXPECT_LT(text.find("## Hazards"), text.find("## Stack"));
  EXPECT_LT(text.find("## Slowest cases"), text.find("## Benefit"));
  EXPECT_NE(text.find("The 10 largest of 84 cases."), std::string::npos) << text;
  EXPECT_NE(text.find("`case 83`"), std::string::npos);
  EXPECT_EQ(text.find("`case 73` | 83.00 | 10.00"), std::string::npos);
  EXPECT_LT(text.find("## Benefit\n"), text.find("## Benefit by axis\n"));
  EXPECT_NE(text.find("| `tp` | `2` | 42 | 7.25 | 5.20 | 9.30 | 0.0 |\n"
                      "| `tp` | `1` | 42 | 3.05 | 1.00 | 5.10 | 0.0 |\n"),
            std::string::npos)
      << text;
  EXPECT_EQ(text.find("| `impl` |"), std::string::npos) << "an axis with one value";
}

TEST(Markdown, SaysWhereRanksSharedGpus) {
  RunResult run = run_of({ended('1', "tp=4", "pass"_verdict, 10)});
  EXPECT_EQ(page(run).find("ranks per GPU"), std::string::npos);
  run.run.options.sharing.ranks_per_gpu = 2;
  EXPECT_NE(page(run).find("| ranks per GPU | up to 2, in cases of more ranks than GPUs"),
            std::string::npos);
  EXPECT_EQ(page(run).find("cases per GPU"), std::string::npos);
  run.run.options.sharing.cases_per_gpu = 8;
  EXPECT_NE(page(run).find("| cases per GPU | up to 8 at the same time"), std::string::npos);
}

}  // namespace
}  // namespace graphproof::reports
