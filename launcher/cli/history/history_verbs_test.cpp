// The verbs compare, history and baseline, on run folders that are written here.
#include <gtest/gtest.h>

#include <fstream>

#include "launcher/cli/testing/command_under_test.h"
#include "reports/record/job/plan.h"
#include "reports/record/run/record.h"
#include "reports/record/run/run.h"
#include "reports/record/schema/violations.h"
#include "reports/record/text/file.h"

namespace graphproof::cli {
namespace {

namespace fs = std::filesystem;
using record::operator""_verdict;

struct HistoryVerbs : CommandUnderTest {
  /// Writes runs/ID: two cases, of which the second ends with `verdict`.
  void run(const std::string& id, const std::string& day, record::Verdict verdict,
           const std::string& nccl = "2.28") const {
    const fs::path folder = top / "runs" / id;
    fs::create_directories(folder);
    const record::Run run{.run_id = id,
                          .started = "2026-11-" + day + "T10:15:00Z",
                          .command = {"graphproof"},
                          .profile = "smoke",
                          .matrix = {.name = "m", .sha256 = std::string(64, '0')},
                          .device = "sim",
                          .engine = "local",
                          .slots = 1,
                          .stack = {.torch_version = "2.11",
                                    .cuda_version = "none",
                                    .nccl_version = nccl,
                                    .driver = "none",
                                    .cudnn_version = "none",
                                    .mpi = "none",
                                    .kernel = "6.1",
                                    .host = "node1",
                                    .cpus = 2}};
    std::ofstream(folder / "run.json") << record::to_json(run).dump();
    std::ofstream plan(folder / "plan.jsonl"), journal(folder / "journal.jsonl");
    for (int number = 1; number <= 2; ++number) {
      const record::PlanLine line{.id = std::string(16, static_cast<char>('0' + number)),
                                  .name = "tp=" + std::to_string(number),
                                  .axes = {{"tp", number}},
                                  .isolation = "batch",
                                  .why = "test"};
      plan << record::to_line(line);
      record::Record record{.run_id = id,
                            .case_id = line.id,
                            .name = line.name,
                            .context = {.device = "sim",
                                        .isolation = "batch",
                                        .engine = "local",
                                        .start = "cold",
                                        .batch = "b001"},
                            .verdict = number == 2 ? verdict : "pass"_verdict,
                            .observed = number == 2 ? verdict : "pass"_verdict,
                            .rule = 90,
                            .reason = "a test",
                            .seconds = 1};
      if (record.verdict.in("fail"))
        record.failing = {
            {.check = "",
             .rank = {},
             .message = {.what = "w", .got = "g", .want = "w", .why = "y", .next = "n"}}};
      journal << record::to_line(record);
    }
  }
};

TEST_F(HistoryVerbs, CompareGatesAndFormats) {
  run("a", "01", "pass"_verdict);
  run("b", "02", "fail.capture"_verdict, "2.29");
  const Printed text = cli({"compare", "a", "b", "--fail-on", "broken"});
  EXPECT_EQ(text.exit_code, 1) << text.out << text.err;
  EXPECT_NE(text.out.find("NCCL  2.28  2.29"), std::string::npos) << text.out;
  EXPECT_EQ(cli({"compare", "b", "a", "--fail-on", "broken"}).exit_code, 0);
  EXPECT_EQ(cli({"compare", "a", "a"}).exit_code, 0);
  EXPECT_EQ(cli({"compare", "a", "a", "--fail-on", "perf>3%"}).exit_code, 4)
      << "no time was measured";
  EXPECT_TRUE(cli({"compare", "a", "b", "--format", "markdown"}).out.starts_with("# a -"));
  EXPECT_TRUE(cli({"compare", "a", "b", "--format", "html"}).out.starts_with("<!doctype html>"));
  const auto value =
      nlohmann::json::parse(cli({"compare", "a", "b", "--json", "--fail-on", "broken"}).out);
  EXPECT_EQ(value.at("gates").at(0).at("state"), "failed");
}

TEST_F(HistoryVerbs, CompareRefusesWhatIsNotComparableAndSaysWhy) {
  run("a", "01", "pass"_verdict);
  fs::create_directories(top / "runs/watched");
  fs::copy(top / "runs/a/run.json", top / "runs/watched/run.json");
  const Printed printed = cli({"compare", "a", "watched"});
  EXPECT_EQ(printed.exit_code, 2);
  EXPECT_NE(printed.err.find("it has no plan of cases"), std::string::npos) << printed.err;
  EXPECT_EQ(cli({"compare", "a", "a", "--fail-on", "speed>3%"}).exit_code, 2);
  EXPECT_EQ(cli({"compare", "a", "a", "--format", "pdf"}).exit_code, 2);
}

TEST_F(HistoryVerbs, HistoryNamesTheFirstBadRun) {
  run("a", "01", "pass"_verdict);
  run("b", "02", "pass"_verdict);
  run("c", "03", "fail.capture"_verdict, "2.29");
  EXPECT_EQ(cli({"history", "show", "tp=2"}).exit_code, 2) << "there is no history yet";
  const Printed added = cli({"history", "add", "a", "b", "c"});
  EXPECT_EQ(added.exit_code, 0) << added.err;
  EXPECT_EQ(
      added.out,
      "added run a with 2 cases\nadded run b with 2 cases\nadded run c with 2 cases\ntrends in " +
          (top / "runs/index.html").string() + "\n");
  EXPECT_TRUE(fs::exists(top / "runs/history.db"));
  EXPECT_TRUE(fs::exists(top / "runs/index.html"));
  const Printed shown = cli({"history", "show", "tp=2"});
  EXPECT_NE(shown.out.find("first bad run of its latest failures: c\nlast good run before: b\n"
                           "  changed between them: NCCL: 2.28 -> 2.29\n"
                           "  in every run that failed and in none that passed: NCCL 2.29\n"),
            std::string::npos)
      << shown.out;
  EXPECT_NE(cli({"history", "show", "tp=1"}).out.find("it never failed"), std::string::npos);
  EXPECT_EQ(cli({"history", "show", "tp=9"}).exit_code, 2);
  EXPECT_EQ(cli({"history", "flaky"}).out, "no case passed and failed on one stack\n");
  const auto trend = nlohmann::json::parse(cli({"history", "trend", "--json"}).out).at("runs");
  ASSERT_EQ(trend.size(), 3u);
  EXPECT_EQ(trend[2].at("failed"), 1);
  const Printed wrong = cli({"history", "sho"});
  EXPECT_EQ(wrong.exit_code, 2);
  EXPECT_NE(wrong.err.find("did you mean `show`?"), std::string::npos) << wrong.err;
}

TEST_F(HistoryVerbs, BaselineExcusesOneFailureOfOneCase) {
  run("a", "01", "fail.capture"_verdict);
  const std::vector<std::string> accept = {"baseline", "accept", "a/tp=2",  "--reason",  "upstream",
                                           "--owner",  "me",     "--until", "2099-01-01"};
  for (const std::size_t option : {3, 5, 7}) {
    auto without = accept;
    without.erase(without.begin() + static_cast<std::ptrdiff_t>(option),
                  without.begin() + static_cast<std::ptrdiff_t>(option) + 2);
    EXPECT_EQ(cli(without).exit_code, 2) << accept[option] << " is missing";
  }
  auto past = accept;
  past.back() = "2020-01-01";
  EXPECT_NE(cli(past).err.find("--until is no day to come"), std::string::npos);
  auto passed = accept;
  passed[2] = "a/tp=1";
  EXPECT_NE(cli(passed).err.find("this case did not fail"), std::string::npos);

  EXPECT_EQ(cli({"history", "add", "a"}).exit_code, 0);
  EXPECT_EQ(cli({"baseline", "diff", "a"}).exit_code, 1) << "not accepted yet";
  const Printed accepted = cli(accept);
  EXPECT_EQ(accepted.exit_code, 0) << accepted.err;
  EXPECT_NE(cli({"baseline", "show"}).out.find("fail.capture of me, until 2099-01-01: upstream"),
            std::string::npos);
  const Printed excused = cli({"baseline", "diff", "a"});
  EXPECT_EQ(excused.exit_code, 0) << excused.out;
  EXPECT_TRUE(excused.out.starts_with("accepted fail.capture")) << excused.out;
  run("b", "02", "fail.numerics"_verdict);
  EXPECT_EQ(cli({"baseline", "diff", "b"}).exit_code, 1) << "fails in another way";
}

TEST_F(HistoryVerbs, WhatTheyPrintForProgramsFollowsTheSchemas) {
  run("20261101-101500-3f2a", "01", "pass"_verdict);
  run("20261102-101500-3f2a", "02", "fail.capture"_verdict);
  run("20261103-101500-3f2a", "03", "fail.capture"_verdict, "2.29");
  const std::vector<std::vector<std::string>> commands = {
      {"history", "trend"},  // of a history without a run that is compared
      {"history", "show", "tp=1"},
      {"history", "show", "tp=2"},
      {"history", "flaky"},
      {"history", "trend", "--runs", "1"},
      {"baseline", "show"},
      {"baseline", "diff", "20261102-101500-3f2a"},
      {"baseline", "accept", "20261102-101500-3f2a/tp=2", "--reason", "r", "--owner", "o",
       "--until", "2099-01-01"},
      {"baseline", "show"},
      {"baseline", "diff", "20261103-101500-3f2a"}};
  const auto follows = [&](std::vector<std::string> command) {
    command.emplace_back("--json");
    const Printed printed = cli(command);
    const auto value = nlohmann::json::parse(printed.out, nullptr, false);
    ASSERT_TRUE(value.is_object()) << command[1] << printed.out << printed.err;
    EXPECT_EQ(value.at("action"), command[1]);
    for (const std::string& violation : record::violations(command[0], value))
      ADD_FAILURE() << command[0] << " " << command[1] << ": " << violation << "\n" << printed.out;
  };
  follows(
      {"history", "add", "20261101-101500-3f2a", "20261102-101500-3f2a", "20261103-101500-3f2a"});
  for (const auto& command : commands) follows(command);
}

TEST_F(HistoryVerbs, AReportSaysWhatIsNewSinceTheLastRunInTheHistory) {
  run("a", "01", "pass"_verdict);
  run("b", "02", "fail.capture"_verdict, "2.29");
  EXPECT_EQ(cli({"history", "add", "a", "b"}).exit_code, 0);
  const Printed printed = cli({"report", "b"});
  EXPECT_NE(printed.out.find("\nnew: since run a, 1 case broke, NCCL 2.28 -> 2.29\n"),
            std::string::npos)
      << printed.out << printed.err;
  EXPECT_NE(printed.out.find("  since  this run\n"), std::string::npos) << printed.out;
  EXPECT_NE(record::read_text(top / "runs/b/summary.md").find("1 case broke"), std::string::npos);
}

TEST_F(HistoryVerbs, AReportIsPrintedAlsoWhereNothingCanBeWritten) {
  run("a", "01", "pass"_verdict);
  const record::FullDisk full(1000);
  const Printed printed = cli({"report", "a"});
  EXPECT_NE(printed.out.find("verdicts: 2 pass\n"), std::string::npos) << printed.out;
  EXPECT_NE(printed.err.find("cannot write"), std::string::npos) << printed.err;
  EXPECT_NE(printed.exit_code, 0);
  EXPECT_FALSE(fs::exists(top / "runs/a/report.html"));
}

}  // namespace
}  // namespace graphproof::cli
