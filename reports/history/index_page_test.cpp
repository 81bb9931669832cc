#include "reports/history/index_page.h"

#include <gtest/gtest.h>

#include "reports/record/testing/scratch_folder.h"
#include "reports/testing/healthy_case.h"

namespace graphproof::reports {
namespace {

using record::operator""_verdict;

TEST(IndexPage, HasTheLatestRunFirstAndKeepsHostileTextAsText) {
  const record::ScratchFolder scratch;
  History history(scratch.path() / "history.db", Database::Mode::write);
  for (const char day : {'1', '2', '3'}) {
    RunResult run =
        run_of({ended('1', "<b>\"x\"", day == '2' ? "fail.capture"_verdict : "pass"_verdict, 90)});
    run.run.run_id = std::string("run-") + day;
    run.run.started = std::string("2026-11-0") + day + "T00:00:00Z";
    run.run.profile = "<script>alert(1)</script>";
    history.add(run);
  }
  history.accept({.case_id = std::string(16, '1'),
                  .name = "<b>\"x\"",
                  .verdict = "fail.capture",
                  .reason = "because",
                  .owner = "me",
                  .until = "2026-11-10",
                  .accepted = "2026-11-02",
                  .run_id = "run-2"});
  const std::string page = index_page(history, "2026-11-11", [](const std::string& run) {
    return run == "run-3" ? run + "/report.html" : run == "run-2" ? "\" onclick=\"x" : "";
  });
  EXPECT_LT(page.find("<a href=\"run-3/report.html\">run-3</a>"), page.find("<td>run-1</td>"));
  EXPECT_NE(page.find("<td>1 of 3</td>"), std::string::npos) << "flaky";
  EXPECT_NE(page.find("2026-11-10 (expired)"), std::string::npos);
  EXPECT_NE(page.find("run-2: 1 failed of 1"), std::string::npos);
  EXPECT_NE(page.find("href=\"&quot; onclick=&quot;x\""), std::string::npos);
  for (const char* absent : {"<script", "http://", "https://", "<b>"})
    EXPECT_EQ(page.find(absent), std::string::npos) << absent;
}

}  // namespace
}  // namespace graphproof::reports
