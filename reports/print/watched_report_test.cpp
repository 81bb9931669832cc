// The reports of a watched run: what a reader acts on is there, and text of the watched program
// cannot break them.
#include "reports/print/watched_report.h"

#include <gtest/gtest.h>

#include "reports/print/watched_page.h"

namespace graphproof::reports {
namespace {

using record::Result;

record::CheckResult check(const std::string& name, Result result, record::Message message,
                          std::optional<int> rank = {}) {
  return {.check = name, .result = result, .rank = rank, .message = std::move(message)};
}

/// A run whose command exited well although a check failed in it.
WatchedReport report_of_a_failure() {
  WatchedReport report;
  report.run.id = "20261124-101500-4a1f";
  report.run.command = {"python3", "my train.py", "--lr=1"};
  report.run.folder = "/data";
  report.run.host = "node1";
  report.run.started = "2026-11-24T10:15:00Z";
  report.run.seconds = 62;
  report.run.ending = "exited";
  report.run.exit_code = 0;
  report.run.unwatched = {{.pid = 5, .command = "worker", .why = "it cleared its environment"}};
  report.run.notes = {"NCCL's log is not read: the user set NCCL_DEBUG"};
  report.checks.checks = {
      check("D07.static_addresses", Result::pass, {"no operand moved", "14 blocks", "", "", ""}),
      check("D61.foreign_threads", Result::unexercised, {"not seen", "no CUPTI", "", "", ""}),
      check("D60.host_nodes", Result::fail,
            {"a graph calls the host", "1 node", "none", "its arguments are frozen",
             "move the call out of the capture"},
            1)};
  report.checks.graphs = {{.process = "node1.4711",
                           .executable = 1,
                           .captured_at = "train.py:42 step",
                           .nodes = {{"kernel", 3}},
                           .replays = 5},
                          {.process = "node1.4712",
                           .rank = 1,
                           .executable = 1,
                           .captured_at = "train.py:50 backward",
                           .stack = {"train.py:50 backward", "train.py:70 main"},
                           .nodes = {{"kernel", 120}, {"memcpy", 2}},
                           .kernels = {{.kernel = "scale", .count = 100}},
                           .pool_bytes = 3 << 20,
                           .replays = 100,
                           .replays_per_step_least = 1,
                           .replays_per_step_most = 2,
                           .launch_share = 0.8125,
                           .kernels_between = 12.5,
                           .between = std::vector<record::BetweenReplays>{
                               {.what = "kernel", .name = "fused_adam", .per_replay = 12.5},
                               {.what = "wait", .name = "cuEventSynchronize", .per_replay = 1}}}};
  report.checks.figures = {{"graph_share", 0.75}};
  report.checks.notes = {"no training step was seen"};
  report.outcome = watched_outcome(report.run, report.checks, 2);
  report.processes = 2;
  report.folder = "/data/runs/20261124-101500-4a1f";
  return report;
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(WatchedText, NamesTheFailureTheGraphsTheGapsAndTheEnd) {
  const std::string text = watched_text(report_of_a_failure(), {.colour = false, .columns = 400});
  for (const char* part :
       {"  D60.host_nodes on rank 1: a graph calls the host\n    got   1 node\n    want  none\n"
        "    why   its arguments are frozen\n    next  move the call out of the capture\n",
        "fail         D60.host_nodes        1     a graph calls the host; 1 node\n",
        "unexercised  D61.foreign_threads   -     not seen; no CUPTI\n",
        "before a replay of graph 1 of node1.4712: 12.5 x fused_adam, 1.0 x cuEventSynchronize\n",
        "note: NCCL's log is not read: the user set NCCL_DEBUG\n",
        "note: process 5 (worker) was not watched: it cleared its environment\n",
        "note: no training step was seen\n", "\nfail: 1 check failed: D60.host_nodes on rank 1\n",
        "command: exit code 0 after 1:02; 2 processes were watched\n",
        "exit 1 (watched run 20261124-101500-4a1f; "
        "/data/runs/20261124-101500-4a1f/report.md)\n"})
    EXPECT_TRUE(has(text, part)) << part << "\nis not in\n" << text;
}

TEST(WatchedText, ShowsTheGraphOfMostReplaysFirstAndNoColumnOfDashes) {
  const std::string text = watched_text(report_of_a_failure(), {.colour = false, .columns = 400});
  const std::string want =
      "captured at           process     rank  graph  replays  per step  of kernels  between  "
      "pool, MiB  nodes\n"
      "train.py:50 backward  node1.4712  1     1      100      1 to 2    81.2 %      12.5     3.0"
      "        120 kernel, 2 memcpy\n"
      "train.py:42 step      node1.4711  -     1      5        -         -           -        -  "
      "        3 kernel\n";
  EXPECT_TRUE(has(text, want)) << text;
}

TEST(WatchedText, NamesTheDriverCallsOfAHang) {
  WatchedReport report = report_of_a_failure();
  report.run.ending = "hung";
  report.run.why = "nothing moved for 600 s";
  report.run.waiting = {{.process = "node1.4711",
                         .pid = 4711,
                         .thread = 4712,
                         .name = "python3",
                         .call = "cuStreamSynchronize",
                         .seconds = 601.2}};
  report.outcome = watched_outcome(report.run, report.checks, 2);
  const std::string line =
      "node1.4711: thread 4712 (python3) has been inside cuStreamSynchronize for 601 s";
  EXPECT_TRUE(has(watched_text(report, {}), line)) << watched_text(report, {});
  EXPECT_TRUE(has(watched_page(report), "<td>cuStreamSynchronize</td>"));
  EXPECT_TRUE(has(watched_markdown(report), "Where it hung"));
}

TEST(WatchedText, ManyGraphsDoNotScrollTheVerdictAway) {
  WatchedReport report = report_of_a_failure();
  report.checks.graphs.assign(100, report.checks.graphs[0]);
  const std::string text = watched_text(report, {});
  EXPECT_TRUE(has(text, "... and 80 more graphs, in report.md\n")) << text;
}

TEST(WatchedMarkdown, HasTheSameFactsAndEscapesThem) {
  WatchedReport report = report_of_a_failure();
  report.checks.graphs[0].captured_at = "a|b <c>";
  const std::string page = watched_markdown(report);
  for (const char* part :
       {"# graphproof watch: fail\n", "| command | `python3 'my train.py' --lr=1` |\n",
        "| its end | exit code 0 |\n", "- **D60.host\\_nodes on rank 1**: a graph calls the host\n",
        "| fail | `D60.host_nodes` | 1 | a graph calls the host; 1 node |\n", "100 x scale |\n",
        "a\\|b \\<c\\>",
        "## Between replays\n\n- before a replay of graph 1 of node1.4712: 12.5 x fused\\_adam",
        "| `graph_share` | 0.750 |\n", "- no training step was seen\n"})
    EXPECT_TRUE(has(page, part)) << part << "\nis not in\n" << page;
}

TEST(WatchedPage, ShowsTextOfTheProgramAsTextAndLoadsNothing) {
  WatchedReport report = report_of_a_failure();
  report.checks.graphs[0].captured_at = "</td><script>alert(1)</script> <!--head--> &amp;";
  report.outcome.failing[0].message.what = "<!--main-->";
  const std::string page = watched_page(report);
  EXPECT_FALSE(has(page, "<script"));
  EXPECT_TRUE(has(page, "&lt;script&gt;alert(1)&lt;/script&gt; &lt;!--head--&gt; &amp;amp;"));
  EXPECT_TRUE(has(page, "default-src 'none'"));
  EXPECT_FALSE(has(page, "<!--head-->"));
  EXPECT_FALSE(has(page, "/*page.css*/"));
  EXPECT_TRUE(has(page, "train.py:70 main\n100 x scale")) << "the whole stack";
  EXPECT_TRUE(has(page, "<span class=\"verdict product\">fail</span>"));
}

TEST(CommandText, QuotesWhatAShellWouldSplit) {
  EXPECT_EQ(command_text({"a", "b c", "", "it's", "x=1"}), "a 'b c' '' 'it'\\''s' x=1");
}

}  // namespace
}  // namespace graphproof::reports
