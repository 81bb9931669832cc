#include "launcher/run/expectation.h"

#include <gtest/gtest.h>

#include <fstream>

#include "reports/record/run/record.h"
#include "reports/record/testing/scratch_folder.h"

namespace graphproof::launcher {
namespace {

namespace fs = std::filesystem;

record::Record took(const std::string& id, double seconds, const char* verdict = "pass",
                    const char* device = "sim") {
  record::Record record{.run_id = "20260101-000000-0001", .case_id = id, .name = "x"};
  record.context = {device, "batch", "local", "cold", "b001"};
  record.verdict = record.observed = *record::Verdict::from(verdict);
  record.seconds = seconds;
  return record;
}

void write_run(const fs::path& runs, const std::string& id,
               const std::vector<record::Record>& records) {
  fs::create_directories(runs / id);
  std::ofstream(runs / id / "run.json") << "{}";
  std::ofstream journal(runs / id / "journal.jsonl");
  for (const record::Record& record : records) journal << record::to_line(record);
}

TEST(ExpectationTest, TheMedianOfPassingAttemptsOfThisDeviceIsExpected) {
  const record::ScratchFolder runs;
  const std::string a = "000000000000000a", b = "000000000000000b";
  write_run(runs.path(), "20260101-000000-0001", {took(a, 2), took(b, 60, "fail.hang.replay")});
  write_run(runs.path(), "20260102-000000-0001", {took(a, 9), took(b, 5, "pass", "cuda")});
  write_run(runs.path(), "20260103-000000-0001", {took(a, 4), took(b, 0)});
  std::ofstream(runs.path() / "20260103-000000-0001/journal.jsonl", std::ios::app) << "{\"torn";
  EXPECT_EQ(earlier_seconds(runs.path(), "sim"), (std::map<std::string, double>{{a, 4}}));
  std::vector<record::PlanLine> plan(2);
  plan[0].id = a;
  plan[1].id = b;
  plan[1].expected_seconds = 7;
  expect(plan, earlier_seconds(runs.path(), "sim"));
  EXPECT_EQ(plan[0].expected_seconds, 4);
  EXPECT_EQ(plan[1].expected_seconds, 7) << "a case without records keeps what was planned";
}

TEST(ExpectationTest, OnlyTheNewestRunsCountAndADamagedOneForNothing) {
  const record::ScratchFolder runs;
  const std::string a = "000000000000000a";
  for (int run = 0; run < kExpectationRuns + 3; ++run)
    write_run(runs.path(), "2026010" + std::to_string(run) + "-000000-0001",
              {took(a, run < 3 ? 100 : 1)});
  EXPECT_EQ(earlier_seconds(runs.path(), "sim").at(a), 1);
  std::ofstream(runs.path() / "20260107-000000-0001/journal.jsonl") << "damage\n";
  EXPECT_EQ(earlier_seconds(runs.path(), "sim").at(a), 1);
  EXPECT_TRUE(earlier_seconds(runs.path() / "nowhere", "sim").empty());
}

}  // namespace
}  // namespace graphproof::launcher
