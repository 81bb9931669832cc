// For tests: an attempt of two ranks in which everything is as it should be, and runs made of a few
// cases.
#pragma once

#include <string>

#include "reports/outcome/outcome.h"
#include "reports/outcome/run_result.h"

namespace graphproof::reports {

inline record::CheckResult check_result(const std::string& check, record::Result result) {
  return {.check = check,
          .result = result,
          .rank = {},
          .message = {.what = check + " says so",
                      .got = "g",
                      .want = "w",
                      .why = "y",
                      .next = "./graphproof repro 20261121-101500-3f2a/9d2c0f6a1b3e4d57"}};
}

inline record::Limits all_limits() {
  record::Limits limits;
  for (std::size_t i = 0; i < record::kPhaseCount; ++i)
    limits[static_cast<record::Phase>(i)] = 5000;
  return limits;
}

inline OutcomeInput healthy_case() {
  OutcomeInput input;
  const nlohmann::json axes = {{"impl", "full_iteration"}, {"tp", 2}, {"fault", "none"}};
  input.plan = {.id = "9d2c0f6a1b3e4d57",
                .name = "impl=full_iteration,tp=2",
                .axes = axes,
                .ranks = 2,
                .isolation = "batch",
                .environment = {},
                .limits_ms = {},
                .expect = {},
                .required_checks = {"D01.lockstep", "D43.replays"},
                .skip = {},
                .why = "product of profile smoke",
                .expected_seconds = 0.5};
  input.context = record::Context{.run_id = "20261121-101500-3f2a",
                                  .case_id = input.plan.id,
                                  .attempt = 1,
                                  .batch = "b001",
                                  .device = "sim",
                                  .isolation = "batch",
                                  .engine = "local",
                                  .start = "cold",
                                  .world_size = 2,
                                  .seconds = 0.4,
                                  .limits_ms = all_limits(),
                                  .expect = {},
                                  .axes = axes,
                                  .required_checks = input.plan.required_checks,
                                  .ended = "finished",
                                  .ranks = {},
                                  .hang = {},
                                  .first_dead = {},
                                  .infra = {},
                                  .cleanup = {}};
  input.checks =
      record::Checks{.case_id = input.plan.id,
                     .attempt = 1,
                     .ranks = {},
                     .figures = {{"eager_ms", 3.1}},
                     .checks = {check_result("D01.lockstep", record::Result::pass),
                                check_result("D43.replays", record::Result::pass),
                                check_result("D04.learning_rate", record::Result::pass)}};
  for (int rank = 0; rank < 2; ++rank) {
    input.context->ranks.push_back(
        {.rank = rank,
         .pid = 4710 + rank,
         .case_ended = true,
         .phase = record::Phase::teardown_process,
         .arm = "",
         .step = 0,
         .collective = {},
         .silent_ms = 0,
         .exit = {},
         .log = {.file = "batches/b001/rank.log", .begin = 0, .end = 10}});
    input.checks->ranks.push_back({.rank = rank,
                                   .complete = true,
                                   .last_phase = record::Phase::teardown_comm,
                                   .refused = {},
                                   .error = {}});
  }
  input.today = "2026-11-21";
  return input;
}

inline record::Run run_of_tests() {
  return {.run_id = "20261121-101500-3f2a",
          .started = "2026-11-21T10:15:00Z",
          .command = {"graphproof", "run", "--profile", "smoke"},
          .profile = "smoke",
          .matrix = {.name = "built-in", .sha256 = std::string(64, '0'), .axes_version = 1},
          .seed = 1,
          .device = "sim",
          .engine = "local",
          .slots = 4,
          .stack = {.torch_version = "2.11.0",
                    .cuda_version = "none",
                    .nccl_version = "none",
                    .driver = "none",
                    .cudnn_version = "none",
                    .mpi = "Open MPI 4.1.4",
                    .gpus = {},
                    .sm = 0,
                    .kernel = "6.1.0",
                    .host = "node1",
                    .cpus = 2,
                    .environment = {}}};
}

/// A case that ended with `verdict` by `rule`. Its id is `digit` sixteen times.
inline CaseResult ended(char digit, const std::string& name, record::Verdict verdict, int rule) {
  OutcomeInput input = healthy_case();
  input.plan.id = std::string(16, digit);
  input.plan.name = name;
  input.context->case_id = input.plan.id;
  Outcome outcome{.verdict = verdict,
                  .observed = verdict,
                  .rule = rule,
                  .reason = "because of " + std::string(verdict.text())};
  if (verdict.in("fail"))
    outcome.failing = {{.check = "D01.lockstep",
                        .rank = 1,
                        .message = {.what = "step 3 differs",
                                    .got = "0.25",
                                    .want = "0.125",
                                    .why = "a stale input",
                                    .next = "look at the input"}}};
  CaseResult result{
      input.plan,
      make_record(input, outcome, "20261121-101500-3f2a", "cases/" + input.plan.id + "/attempt-1"),
      {}};
  for (const auto& check : input.checks->checks) result.checks[check.check] = check.result;
  return result;
}

inline CaseResult skipped(char digit) {
  using record::operator""_verdict;
  CaseResult one = ended(digit, "tp=8", "skipped.gpus"_verdict, 10);
  one.plan.skip = record::Skip{.verdict = "skipped.gpus"_verdict, .why = "needs 8 ranks"};
  return one;
}

inline std::string joined(const std::vector<std::string>& sentences) {
  std::string all;
  for (const std::string& one : sentences) all += one + "\n";
  return all;
}

inline RunResult run_of(std::vector<CaseResult> cases, Ending ending = Ending::finished) {
  return {.run = run_of_tests(),
          .run_name = "20261121-101500-3f2a",
          .ending = ending,
          .wall_seconds = 41.2,
          .cases = std::move(cases)};
}

/// A pass, an unexercised case, two failures and a fault that was killed, not in the order in which
/// reports show them.
inline RunResult mixed_run() {
  using record::operator""_verdict;
  CaseResult killed = ended('4', "fault=M23", "pass.killed"_verdict, 81);
  killed.plan.expect = {
      .kind = "fault", .fault = "M23", .detector = "D04", .clean_twin = std::string(16, '1')};
  killed.checks = {{"D04.learning_rate", record::Result::fail}};
  return run_of({ended('1', "tp=2", "pass"_verdict, 90),
                 ended('2', "tp=1", "unexercised"_verdict, 65),
                 ended('3', "dropout=true", "fail.numerics"_verdict, 60), killed,
                 ended('5', "dp=2", "fail.hang.replay"_verdict, 40)});
}

}  // namespace graphproof::reports
