// A run goes on after whatever ended its launcher, with the verdicts of an undisturbed run.
#include <fstream>
#include <map>
#include <random>
#include <set>

#include "launcher/batch/attempt_folder.h"
#include "launcher/policy/case_policy.h"
#include "launcher/testing/run_of_fakes.h"
#include "matrix/input/input_error.h"
#include "reports/record/testing/scratch_folder.h"

namespace graphproof::launcher {
namespace {

namespace fs = std::filesystem;

struct ResumeTest : RunOfFakes {
  std::map<std::string, std::string> verdicts(const reports::RunResult& result) const {
    std::map<std::string, std::string> found;
    for (const reports::CaseResult& one : result.cases)
      found[one.plan.name] = one.record.verdict.text();
    return found;
  }
  /// Every planned case has a final record, each attempt at most one record, and no final record
  /// comes before another of its case.
  void expect_each_case_once() const {
    std::set<std::pair<std::string, int>> attempts;
    std::map<std::string, int> final;
    for (const record::Record& record : journal()) {
      EXPECT_TRUE(attempts.emplace(record.case_id, record.attempt).second)
          << record.name << " attempt " << record.attempt;
      EXPECT_TRUE(record.attempt == 1 || !record.again.empty())
          << record.name << " does not say why it ran again";
      for (const record::PlanLine& line : setup.plan)
        if (line.id == record.case_id) final[record.case_id] += !wants_diagnosis(record, line);
    }
    for (const record::PlanLine& line : setup.plan) EXPECT_EQ(final[line.id], 1) << line.name;
  }
};

std::vector<record::PlanLine> slow_plan(int cases) {
  std::vector<record::PlanLine> plan;
  for (int i = 0; i < cases; ++i) plan.push_back(fake_line(i, 1, "slow replay 0"));
  return plan;
}

TEST_F(ResumeTest, AfterAnInterruptOnlyTheRestIsRun) {
  setup.plan = slow_plan(8);
  Background first([this] { return run(setup, {}); });
  ASSERT_TRUE(
      wait_for([this] { return fs::exists(folder / "journal.jsonl") && !journal().empty(); }));
  first.send(SIGINT);
  EXPECT_EQ(first.wait(), 5);
  const std::size_t before = journal().size();
  EXPECT_EQ(read_run(folder).ending, reports::Ending::interrupted);
  const auto result = go_on();
  EXPECT_EQ(reports::exit_code(result), record::ExitCode::ok);
  EXPECT_EQ(result.ending, reports::Ending::finished);
  EXPECT_LT(before, 8u);
  EXPECT_EQ(journal().size(), 8u);
  expect_each_case_once();
}

TEST_F(ResumeTest, WhatWasRunningWhenTheLauncherWasKilledRunsAgainAndItsRecordSaysWhy) {
  setup.plan = {fake_line(1, 2, "hang replay 1", "process")};
  setup.run.options.limits_ms[record::Phase::replay] = 60000;
  Background first([this] { return run(setup, {}); });
  const fs::path attempt = folder / attempt_folder(setup.plan[0].id, 1);
  ASSERT_TRUE(wait_for([&] { return fs::exists(attempt / "rank-1.evidence.jsonl"); }));
  first.send(SIGKILL);
  first.wait();
  EXPECT_FALSE(host_folders().empty()) << "a launcher that is killed can remove nothing";
  setup.run.options.limits_ms[record::Phase::replay] = 700;
  const auto result = go_on();
  EXPECT_EQ(verdict(result, 0), "fail.hang.replay");
  ASSERT_EQ(journal().size(), 1u);
  EXPECT_EQ(journal()[0].attempt, 2);
  EXPECT_EQ(journal()[0].again, "attempt 1 was cut off before it ended");
  EXPECT_TRUE(fs::exists(attempt / "rank-1.evidence.jsonl"))
      << "what the first attempt left is kept";
}

TEST_F(ResumeTest, AProcessThatOutlivedTheKilledLauncherIsEndedFirst) {
  setup.plan = {fake_line(1, 1, "daemon build 0"), fake_line(2, 1, "slow replay 0"),
                fake_line(3, 1, "slow replay 0")};
  Background first([this] { return run(setup, {}); });
  ASSERT_TRUE(wait_for([this] {
    return marked().size() >= 3;
  }));  // mpirun, the rank and the process that it left behind
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  first.send(SIGKILL);
  first.wait();
  ASSERT_TRUE(wait_for([this] { return marked().size() == 1; }))
      << "the daemon alone ignores SIGTERM";
  const auto result = go_on();
  EXPECT_NE(notices.find("ending "), std::string::npos) << notices;
  EXPECT_NE(notices.find("which the earlier launcher left"), std::string::npos) << notices;
  EXPECT_EQ(verdict(result, 0), "fail.cleanup.process");
  EXPECT_EQ(verdict(result, 1), "pass");
}

TEST_F(ResumeTest, ASecondLauncherIsRefusedAndTheFirstGoesOn) {
  setup.plan = slow_plan(4);
  Background first([this] { return run(setup, {}); });
  ASSERT_TRUE(wait_for([this] { return fs::exists(folder / "live.json"); }));
  for (const auto& launch : {run, resume}) try {
      launch(setup, {});
      ADD_FAILURE() << "a second launcher was let in";
    } catch (const matrix::InputError& error) {
      EXPECT_NE(error.problem().got.find("process " + std::to_string(first.pid())),
                std::string::npos)
          << error.problem().got;
    }
  EXPECT_EQ(first.wait(), 0);
  EXPECT_FALSE(fs::exists(folder / "live.json")) << "it is of a launcher that runs";
}

TEST_F(ResumeTest, AFullDiskStopsTheRunAndWhatIsRecordedStands) {
  for (int i = 0; i < 40; ++i) setup.plan.push_back(fake_line(i, 1, ""));
  const std::size_t plan_bytes = [&] {
    std::size_t bytes = 0;
    for (const record::PlanLine& line : setup.plan) bytes += record::to_line(line).size();
    return bytes;
  }();
  Background full([&] {
    const record::FullDisk disk(plan_bytes + 2000);
    return run(setup, {});
  });
  EXPECT_EQ(full.wait(), 3);
  const auto before = journal();
  EXPECT_GT(before.size(), 5u);
  EXPECT_LT(before.size(), 40u);
  for (const record::Record& record : before)
    EXPECT_EQ(record.verdict.text(), "pass") << record.reason;
  const auto result = go_on();
  EXPECT_EQ(reports::exit_code(result), record::ExitCode::ok);
  expect_each_case_once();
}

TEST_F(ResumeTest, ANearlyFullDiskStartsNothing) {
  setup.disk_floor_bytes = std::int64_t{1} << 60;
  const auto result = go({fake_line(1, 1, ""), fake_line(2, 2, "")});
  EXPECT_EQ(result.ending, reports::Ending::disk);
  for (std::size_t i = 0; i < 2; ++i) EXPECT_EQ(verdict(result, i), "infra.disk");
  EXPECT_EQ(reports::exit_code(result), record::ExitCode::infrastructure);
  EXPECT_NE(notices.find("nearly full"), std::string::npos) << notices;
  EXPECT_EQ(read_run(folder).ending, reports::Ending::disk);
  setup.disk_floor_bytes = kDiskFloor_bytes;
  EXPECT_EQ(reports::exit_code(go_on()), record::ExitCode::ok);
}

TEST_F(ResumeTest, ABudgetStopsStartingAndTheRestIsResumed) {
  setup.run.options.budget_ms = 600;
  const auto result = go(slow_plan(6));
  EXPECT_EQ(result.ending, reports::Ending::budget);
  EXPECT_EQ(reports::exit_code(result), record::ExitCode::interrupted);
  EXPECT_EQ(verdict(result, 5), "not_run");
  EXPECT_EQ(read_run(folder).ending, reports::Ending::budget);
  setup.run.options.budget_ms = 0;
  EXPECT_EQ(reports::exit_code(go_on()), record::ExitCode::ok);
  expect_each_case_once();
}

TEST_F(ResumeTest, ABudgetThatIsOverWhileTheLastCaseRunsCutsNothingShort) {
  setup.run.options.budget_ms = 300;
  const auto result = go(slow_plan(1));
  EXPECT_GT(result.wall_seconds, 0.3);
  EXPECT_EQ(result.ending, reports::Ending::finished) << notices;
  EXPECT_EQ(reports::exit_code(result), record::ExitCode::ok);
}

TEST_F(ResumeTest, GpuMinutesThatAreUsedUpStopStartingAndTheRestIsResumed) {
  setup.run.options.max_gpu_ms = 600;
  const auto result = go(slow_plan(8));
  EXPECT_EQ(result.ending, reports::Ending::budget);
  EXPECT_EQ(reports::exit_code(result), record::ExitCode::interrupted);
  EXPECT_EQ(verdict(result, 7), "not_run");
  EXPECT_NE(notices.find("--max-gpu-minutes is reached"), std::string::npos) << notices;
  setup.run.options.max_gpu_ms = 0;
  EXPECT_EQ(reports::exit_code(go_on()), record::ExitCode::ok);
  expect_each_case_once();
}

TEST_F(ResumeTest, ConfirmationsMeasureAFailuresRateAndNeverMakeItAPass) {
  setup.run.options.confirm = 3;
  setup.run.slots = 1;
  const fs::path count = scratch.path() / "count";
  const auto result = go({fake_line(0, 1, "wrong replay 0", "process"),
                          fake_line(1, 1, "wrong_at_times " + count.string() + " 0", "process"),
                          fake_line(2, 1, "", "process")});
  EXPECT_EQ(verdict(result, 0), "fail.numerics");
  EXPECT_EQ(verdict(result, 1), "flaky");
  EXPECT_NE(result.cases[1].record.reason.find("1 of 3 confirmations failed"), std::string::npos)
      << result.cases[1].record.reason;
  EXPECT_EQ(verdict(result, 2), "pass");
  EXPECT_EQ(reports::exit_code(result), record::ExitCode::product);
  std::map<std::string, int> attempts;
  for (const record::Record& record : journal()) {
    ++attempts[record.name];
    EXPECT_TRUE(record.attempt == 1 || record.again.starts_with("confirmation ")) << record.again;
    EXPECT_TRUE(record.name == "case2" || record.verdict.text() != "pass")
        << "no record of a failure alone may say pass";
  }
  EXPECT_EQ(attempts, (std::map<std::string, int>{{"case0", 4}, {"case1", 4}, {"case2", 1}}));
}

TEST_F(ResumeTest, MaxFailStopsStartingAndTheRestIsResumed) {
  setup.run.options.max_fail = 2;
  std::vector<record::PlanLine> plan{fake_line(0, 1, "", "process")};
  for (const int i : {1, 2}) plan.push_back(fake_line(i, 1, "wrong replay 0", "process"));
  // This is longer than it takes to judge those two.
  constexpr std::size_t kLast = 11;
  for (std::size_t i = 3; i <= kLast; ++i)
    plan.push_back(fake_line(static_cast<int>(i), 1, "slow replay 0", "process"));
  const auto result = go(plan);
  EXPECT_EQ(result.ending, reports::Ending::max_fail);
  EXPECT_EQ(reports::exit_code(result), record::ExitCode::product);
  EXPECT_EQ(verdict(result, kLast), "not_run");
  EXPECT_EQ(result.cases[kLast].record.rule, 13);
  setup.run.options.max_fail = 0;
  const auto resumed = go_on();
  EXPECT_EQ(verdict(resumed, kLast), "pass");
  expect_each_case_once();
}

TEST_F(ResumeTest, CasesThatAllFailAlikeEndTheRun) {
  std::vector<record::PlanLine> plan;
  for (int i = 0; i < 24; ++i) plan.push_back(fake_line(i, 1, "exit7 build 0", "process"));
  const auto result = go(plan);
  EXPECT_EQ(result.ending, reports::Ending::circuit_breaker);
  EXPECT_NE(notices.find("the first 12 cases all ended fail.crash.exception"), std::string::npos)
      << notices;
  EXPECT_EQ(verdict(result, 23), "not_run");
  EXPECT_EQ(result.cases[23].record.rule, 13);
  EXPECT_EQ(reports::exit_code(result), record::ExitCode::product);
}

/// Cases that go wrong in the same way wherever they run: after a kill the verdicts must be those
/// of an undisturbed run.
std::vector<record::PlanLine> mixed_plan() {
  return {fake_line(0, 1, ""),
          fake_line(1, 1, "wrong replay 0"),
          fake_line(2, 2, ""),
          fake_line(3, 1, "slow replay 0"),
          fake_line(4, 2, "exit7 build 1", "process"),
          fake_line(5, 1, ""),
          fake_line(6, 1, "slow replay 0")};
}

TEST_F(ResumeTest, KilledAtAnyMomentItEndsWithTheVerdictsOfAQuietRun) {
  static constexpr int kKills = 20;
  const auto quiet = verdicts(go(mixed_plan()));
  std::mt19937 random(20260101);
  int kills = 0;
  for (int round = 0; kills < kKills; ++round) {
    ASSERT_LT(round, 3 * kKills) << "the launcher ends before it can be killed";
    fs::remove_all(folder);
    fs::create_directories(folder);
    for (bool finished = false; !finished;) {
      const bool begun = fs::exists(folder / "run.json");
      Background launcher([&] { return begun ? resume(setup, {}) : run(setup, {}); });
      const int delay_ms = kills < kKills ? static_cast<int>(random() % 1200) : 60000;
      for (int waited_ms = 0; waited_ms < delay_ms && !launcher.ended(); waited_ms += 5)
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
      finished = launcher.ended();
      if (finished) {
        EXPECT_EQ(launcher.wait(), 1) << "round " << round;
      } else {
        launcher.send(SIGKILL);
        launcher.wait();
        ++kills;
      }
    }
    const auto result = checked(read_run(folder));
    EXPECT_EQ(result.ending, reports::Ending::finished);
    EXPECT_EQ(verdicts(result), quiet) << "round " << round << ", " << kills << " kills";
    expect_each_case_once();
  }
}

}  // namespace
}  // namespace graphproof::launcher
