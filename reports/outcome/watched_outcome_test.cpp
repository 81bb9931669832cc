// The verdict of a watched run: one row for each situation.
#include "reports/outcome/watched_outcome.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace graphproof::reports {
namespace {

using record::CheckResult;
using record::Result;
using record::WatchedChecks;
using record::WatchedRun;

WatchedRun run_that(const std::string& ending, std::optional<int> exit_code = {},
                    std::optional<int> signal = {}) {
  WatchedRun run;
  run.ending = ending;
  run.exit_code = exit_code;
  run.signal = signal;
  if (ending == "hung") run.why = "nothing moved for 600 s";
  if (ending == "not_started") run.why = "permission denied";
  return run;
}

WatchedRun with_an_unwatched_process() {
  WatchedRun run = run_that("exited", 0);
  run.unwatched = {{.pid = 5, .command = "worker", .why = "no injection path"}};
  return run;
}

WatchedRun with_programs_elsewhere() {
  WatchedRun run = run_that("exited", 0);
  run.elsewhere = {{{.pid = 6,
                     .command = "docker run image",
                     .by = "docker run",
                     .next = "hand the variables on"}}};
  return run;
}

WatchedRun with_a_hidden_probe() {
  WatchedRun run = run_that("exited", 0);
  run.unwatched = {
      {.pid = 5, .command = "worker", .why = "a container hides it", .hidden = "/runs/1/probe"}};
  return run;
}

WatchedRun with_a_signalled_rank() {
  WatchedRun run = run_that("exited", 1);
  run.signalled = {{{.process = "node1.2", .signal = 11}, {.process = "node1.1", .signal = 15}}};
  return run;
}

WatchedRun with_words_of_nccl() {
  WatchedRun run = run_that("hung");
  run.ras = {{"#0-0 MISMATCH", "  rank 1 is behind"}};
  return run;
}

/// Checks with these results, of a run with `graphs` graphs.
WatchedChecks judged(std::vector<Result> results, int graphs = 1) {
  WatchedChecks checks;
  for (const Result result : results)
    checks.checks.push_back({.check = "D60.host_nodes",
                             .result = result,
                             .rank = {},
                             .message = {"a host node", "1", "0", "", "remove it"}});
  for (int number = 1; number <= graphs; ++number)
    checks.graphs.push_back({.process = "node1.1", .executable = number});
  return checks;
}

WatchedChecks with_a_stopped_process() {
  WatchedChecks checks = judged({Result::pass});
  checks.figures["stopped_inside_calls"] = 1;
  return checks;
}

WatchedChecks with_driver_calls_unseen(int graphs) {
  WatchedChecks checks = judged({Result::pass}, graphs);
  checks.figures["processes_without_driver_calls"] = 1;
  return checks;
}

WatchedChecks with_ranks_missing() {
  WatchedChecks checks = judged({Result::pass});
  checks.figures["ranks_without_evidence"] = 2;
  return checks;
}

WatchedChecks with_a_failed_rank(std::optional<int> exit_status) {
  WatchedChecks checks = judged({Result::pass});
  checks.failed_processes = {
      {.process = "two.7.1", .host = "two", .rank = 3, .exit_status = exit_status}};
  return checks;
}

struct Situation {
  const char* name;
  WatchedRun run;
  std::optional<WatchedChecks> checks;
  int processes;
  const char* verdict;
  int exit_code;
  const char* reason;  // part of it
};

const Result kPass = Result::pass, kFail = Result::fail, kUnexercised = Result::unexercised,
             kNotApplicable = Result::not_applicable;

const std::vector<Situation>& situations() {
  static const std::vector<Situation> kRows = {
      {"a check passed", run_that("exited", 0), judged({kPass, kUnexercised}), 1, "pass", 0,
       "1 check passed, none failed; 1 check was unexercised"},
      {"a check failed", run_that("exited", 0), judged({kPass, kFail}), 1, "fail", 1,
       "1 check failed: D60.host_nodes"},
      {"the command failed since a signal ended a rank", with_a_signalled_rank(), judged({kPass}),
       2, "command_failed", 3,
       "the command ended with exit code 1, and no check failed; node1.2 was ended by signal 11 "
       "(Segmentation fault)"},
      {"the command failed since a rank on another host did", run_that("exited", 1),
       with_a_failed_rank(1), 4, "command_failed", 3,
       "no check failed; rank 3 on host two (two.7.1) ended with exit code 1"},
      {"a signal ended a rank on another host", run_that("exited", 1), with_a_failed_rank({}), 4,
       "command_failed", 3, "rank 3 on host two (two.7.1) ended by a signal or by _exit"},
      {"a container hid the probe from one process", with_a_hidden_probe(), judged({kPass}), 1,
       "unexercised", 4,
       "process 5 (worker) ran without the probe or its folder: /runs/1/probe does not exist where "
       "it runs"},
      {"a container hid the probe, and a check failed", with_a_hidden_probe(), judged({kFail}), 1,
       "fail", 1, "1 check failed"},
      {"a profiler holds CUPTI in one of two processes", run_that("exited", 0),
       with_driver_calls_unseen(1), 2, "unexercised", 4,
       "the driver calls of 1 process were not seen: CUPTI was not there for the probe"},
      {"a profiler holds CUPTI in the only process", run_that("exited", 0),
       with_driver_calls_unseen(0), 1, "unexercised", 4,
       "1 process used CUDA, and no CUDA graph is known; the driver calls of 1 of them were not "
       "seen"},
      {"a host does not see the folder of the run", run_that("exited", 0), with_ranks_missing(), 2,
       "unexercised", 4, "a part of the job left no evidence: 2 ranks without evidence"},
      {"the command failed and a check says why", run_that("exited", 1), judged({kFail, kFail}), 1,
       "fail", 1, "1 check failed: D60.host_nodes"},
      {"the command failed and no check says why", run_that("exited", 3), judged({kPass}), 1,
       "command_failed", 3, "exit code 3, and no check failed"},
      {"a signal killed the command", run_that("signalled", {}, 11), judged({kPass}), 1,
       "command_failed", 3, "signal 11 (Segmentation fault)"},
      {"a signal killed it, and a check failed", run_that("signalled", {}, 11), judged({kFail}), 1,
       "fail", 1, "1 check failed"},
      {"a shell's child was killed", run_that("exited", 139), judged({kPass}), 1, "command_failed",
       3, "exit code 139, which a shell gives for signal 11"},
      {"it failed before a CUDA context", run_that("exited", 2), judged({}, 0), 0, "command_failed",
       3, "exit code 2, and no process of the command made a CUDA context"},
      {"it ended before a CUDA context", run_that("exited", 0), judged({}, 0), 0, "unexercised", 4,
       "no process of the command made a CUDA context"},
      {"only an unwatched process used CUDA", with_an_unwatched_process(), judged({}, 0), 0,
       "unexercised", 4, "1 process was not watched, the first is worker: no injection path"},
      {"an unwatched process used CUDA besides a watched one", with_an_unwatched_process(),
       judged({kPass}), 1, "unexercised", 4,
       "process 5 (worker) was not watched: no injection path"},
      {"an unwatched process, and a check failed", with_an_unwatched_process(), judged({kFail}), 1,
       "fail", 1, "1 check failed"},
      {"docker started programs besides a watched process", with_programs_elsewhere(),
       judged({kPass}), 1, "unexercised", 4,
       "process 6 (docker run image) started programs where the probe did not follow: no evidence "
       "from where docker run starts them"},
      {"only docker started programs", with_programs_elsewhere(), judged({}, 0), 0, "unexercised",
       4,
       "no process of the command made a CUDA context, and what docker run started was not seen"},
      {"docker started programs, and a check failed", with_programs_elsewhere(), judged({kFail}), 1,
       "fail", 1, "1 check failed"},
      {"no graph in any process", run_that("exited", 0), judged({kPass}, 0), 2, "unexercised", 4,
       "2 processes used CUDA, and none made a CUDA graph"},
      {"no check had its evidence", run_that("exited", 0), judged({kUnexercised, kNotApplicable}),
       1, "unexercised", 4, "no check had the evidence that it needs"},
      {"it hung", run_that("hung"), judged({kPass}), 1, "hang", 1, "nothing moved for 600 s"},
      {"it hung, and a check failed", run_that("hung"), judged({kFail}), 1, "hang", 1,
       "nothing moved for 600 s; 1 check failed"},
      {"it hung, and NCCL says why", with_words_of_nccl(), judged({kPass}), 1, "hang", 1,
       "nothing moved for 600 s; NCCL: #0-0 MISMATCH"},
      {"it hung, and the judge failed", run_that("hung"), {}, 1, "hang", 1, "nothing moved"},
      {"interrupted", run_that("interrupted"), judged({kPass}), 1, "interrupted", 5,
       "did not come to its end"},
      {"interrupted after a check had failed", run_that("interrupted"), judged({kFail}), 1, "fail",
       1, "1 check failed"},
      {"interrupted before any graph", run_that("interrupted"), judged({}, 0), 0, "interrupted", 5,
       "did not come to its end"},
      {"the launcher was killed", run_that("running"), judged({kPass}), 1, "interrupted", 5,
       "did not come to its end"},
      {"not started", run_that("not_started"), {}, 0, "not_started", 3, "permission denied"},
      {"attached, passed", run_that("attached"), judged({kPass}), 1, "pass", 0, "1 check passed"},
      {"attached, and a process was stopped inside a driver call", run_that("attached"),
       with_a_stopped_process(), 1, "interrupted", 5, "1 process was stopped inside a driver call"},
      {"attached, nothing there", run_that("attached"), judged({}, 0), 0, "unexercised", 4,
       "no process of the command made a CUDA context"},
      {"the judge failed", run_that("exited", 0), {}, 1, "not_judged", 6, "no checks.json"},
  };
  return kRows;
}

TEST(WatchedOutcome, FollowsTheTableOfSituations) {
  for (const Situation& row : situations()) {
    const WatchedOutcome outcome = watched_outcome(row.run, row.checks, row.processes);
    EXPECT_EQ(name(outcome.verdict), row.verdict) << row.name;
    EXPECT_EQ(record::value(exit_code(outcome.verdict)), row.exit_code) << row.name;
    EXPECT_NE(outcome.reason.find(row.reason), std::string::npos)
        << row.name << ": " << outcome.reason;
  }
}

TEST(WatchedOutcome, WhatLeftNoEvidenceIsSaidWithAllThatHelps) {
  for (const auto& [run, checks] : {std::pair(with_a_hidden_probe(), judged({kPass})),
                                    std::pair(with_an_unwatched_process(), judged({kPass})),
                                    std::pair(with_programs_elsewhere(), judged({kPass})),
                                    std::pair(run_that("exited", 0), with_driver_calls_unseen(1)),
                                    std::pair(run_that("exited", 0), with_ranks_missing())}) {
    const WatchedOutcome outcome = watched_outcome(run, checks, 1);
    ASSERT_TRUE(outcome.gap);
    for (const std::string& part : {outcome.gap->what, outcome.gap->got, outcome.gap->want,
                                    outcome.gap->why, outcome.gap->next})
      EXPECT_FALSE(part.empty());
  }
  EXPECT_FALSE(watched_outcome(run_that("exited", 0), judged({kPass}), 1).gap);
}

TEST(WatchedOutcome, ReachesEveryVerdict) {
  std::vector<bool> reached(static_cast<std::size_t>(WatchedVerdict::not_judged) + 1);
  for (const Situation& row : situations())
    reached[static_cast<std::size_t>(watched_outcome(row.run, row.checks, row.processes).verdict)] =
        true;
  EXPECT_EQ(std::count(reached.begin(), reached.end(), false), 0);
}

TEST(WatchedOutcome, PassesOnlyWithAGraphAPassedCheckAndACommandThatDidNotFail) {
  for (const Situation& row : situations()) {
    if (watched_outcome(row.run, row.checks, row.processes).verdict != WatchedVerdict::pass)
      continue;
    ASSERT_TRUE(row.checks) << row.name;
    EXPECT_FALSE(row.checks->graphs.empty()) << row.name;
    EXPECT_GT(row.processes, 0) << row.name;
    EXPECT_EQ(row.run.exit_code.value_or(0), 0) << row.name;
  }
}

TEST(WatchedOutcome, CountsTheResultsAndListsTheFailures) {
  const WatchedOutcome outcome = watched_outcome(
      run_that("exited", 0), judged({kPass, kFail, kUnexercised, kUnexercised, kNotApplicable}), 1);
  EXPECT_EQ(outcome.counts, (record::CheckCounts{1, 1, 2, 1}));
  ASSERT_EQ(outcome.failing.size(), 1u);
  EXPECT_EQ(outcome.failing[0].message.next, "remove it");
}

}  // namespace
}  // namespace graphproof::reports
