// One row per way in which a case can end. Rows start from a healthy two-rank attempt and change what makes them; two
// tests at the end hold that every rule and every verdict has a row.
#include "reports/outcome.h"

#include <gtest/gtest.h>

#include <functional>
#include <set>

#include "reports/faults.h"
#include "reports/healthy_case.h"

namespace graphproof::reports {
namespace {

using record::Phase;
using record::Result;
using record::Verdict;
using record::operator""_verdict;

CheckEffects effects() {
  const std::vector<std::string> both = {"sim", "cuda"};
  return {{"D01.lockstep", {"fail.numerics", both}},
          {"D02.eager_repeats", {"fail.eager", both}},
          {"D04.learning_rate", {"fail.numerics", both}},
          {"D18.coverage", {"fail.not_replayed", {"cuda"}}},
          {"D19.capture_status", {"fail.capture", both}},
          {"D21.evidence_complete", {"fail.silent", both}},
          {"D21.log_clean", {"fail.crash.cuda", both}},
          {"D22.progress", {"fail.hang", both}},
          {"D28.effective_config", {"fail.constraint", both}},
          {"D43.replays", {"fail.not_replayed", both}},
          {"D60.growth", {"fail.memory.growth", both}},
          {"D60.leak", {"fail.memory.leak", both}},
          {"D61.speed", {"fail.perf", both}}};
}

// ---- changes that rows are made of -----------------------------------------------------------------------------------

void expect_fault(OutcomeInput& in, const char* detector = "D04") {
  in.plan.expect = {.kind = "fault", .fault = "M23", .detector = detector, .clean_twin = "1234567890abcdef"};
}

void expect_rejected(OutcomeInput& in) {
  in.plan.expect = {.kind = "rejected", .rule = "R035"};
  in.plan.required_checks = {};
}

/// Every rank refused by `rule`, as a rank program does: nothing is judged then.
void refuse(OutcomeInput& in, const char* rule = "R035") {
  for (record::RankEvidence& rank : in.checks->ranks) {
    rank.last_phase = Phase::validate;
    rank.refused = record::Refusal{.rule = rule, .phase = Phase::validate, .device_initialised = false,
                                   .message = {.what = "refused", .got = "g", .want = "w", .why = "", .next = "n"}};
  }
  for (record::CheckResult& check : in.checks->checks) check.result = Result::not_applicable;
}

void hang(OutcomeInput& in, Phase phase) {
  in.context->ended = "killed";
  in.context->hang = record::Hang{.phase = phase, .limit_ms = 5000, .missing_rank = 1, .waiting_ranks = {0},
                                  .last_collective = {}, .stacks = ""};
  for (record::RankContext& rank : in.context->ranks) {
    rank.case_ended = false;
    rank.phase = phase;
    rank.silent_ms = 5100 + rank.rank;
    rank.exit = record::Exit{.kind = "killed", .value = 9};
  }
  for (record::RankEvidence& rank : in.checks->ranks) {
    rank.complete = false;
    rank.last_phase = phase;
  }
}

void error(OutcomeInput& in, int rank, Phase phase, const char* type, std::int64_t code = 0) {
  record::RankEvidence& evidence = in.checks->ranks.at(static_cast<std::size_t>(rank));
  evidence.complete = false;
  evidence.error = record::RankError{.phase = phase, .arm = "lockstep_graph", .type = type, .code = code, .call = "call",
                                     .message = "message"};
}

void die(OutcomeInput& in, int rank, Phase phase, const char* kind, int value) {
  in.context->ended = "died";
  in.context->first_dead = record::FirstDead{.rank = rank, .exit = {.kind = kind, .value = value}, .phase = phase};
  for (record::RankContext& one : in.context->ranks) {
    one.case_ended = false;
    one.phase = phase;
    one.exit = one.rank == rank ? record::Exit{.kind = kind, .value = value} : record::Exit{.kind = "signal", .value = 15};
  }
  for (record::RankEvidence& one : in.checks->ranks) one.complete = false;
}

void result(OutcomeInput& in, const char* check, Result result) {
  for (record::CheckResult& one : in.checks->checks)
    if (one.check == check) {
      one.result = result;
      return;
    }
  in.checks->checks.push_back(check_result(check, result));
}

void skip(OutcomeInput& in, Verdict verdict) {
  in.plan.skip = record::Skip{.verdict = verdict, .why = "needs 4 ranks"};
  in.context.reset();
  in.checks.reset();
}

void not_run(OutcomeInput& in, NotRun why) {
  in.context.reset();
  in.checks.reset();
  in.not_run = why;
}

void known_issue(OutcomeInput& in, const char* verdict, const char* until) {
  in.plan.expect = {.kind = "known_issue", .issue = "NCCL-1", .verdict = verdict, .owner = "comm", .until = until};
  in.today = "2026-11-21";
}

void hazard(OutcomeInput& in, const char* verdict) {
  in.plan.expect = {.kind = "hazard", .rule = "R035", .verdict = verdict};
}

struct Row {
  const char* name;
  std::function<void(OutcomeInput&)> change;
  Verdict verdict, observed;
  int rule;
};

Row same(const char* name, std::function<void(OutcomeInput&)> change, Verdict verdict, int rule) {
  return {name, std::move(change), verdict, verdict, rule};
}

std::vector<Row> rows() {
  using In = OutcomeInput;
  std::vector<Row> rows = {
      same("a healthy case", [](In&) {}, "pass"_verdict, 90),

      // Not run.
      same("skipped for GPUs", [](In& in) { skip(in, "skipped.gpus"_verdict); }, "skipped.gpus"_verdict, 10),
      same("skipped for architecture", [](In& in) { skip(in, "skipped.arch"_verdict); }, "skipped.arch"_verdict, 10),
      same("skipped for capability", [](In& in) { skip(in, "skipped.capability"_verdict); }, "skipped.capability"_verdict, 10),
      same("a fault this device cannot show", [](In& in) { expect_fault(in); skip(in, "unexercised"_verdict); },
           "unexercised"_verdict, 11),
      same("interrupted before it", [](In& in) { not_run(in, NotRun::interrupted); }, "not_run"_verdict, 12),
      same("budget spent before it", [](In& in) { not_run(in, NotRun::budget); }, "not_run"_verdict, 12),
      same("circuit breaker", [](In& in) { not_run(in, NotRun::circuit_breaker); }, "not_run"_verdict, 13),
      same("--max-fail", [](In& in) { not_run(in, NotRun::max_fail); }, "not_run"_verdict, 13),
      same("a fault that was not run", [](In& in) { expect_fault(in); not_run(in, NotRun::interrupted); }, "not_run"_verdict, 12),
      same("a negative case that was not run", [](In& in) { expect_rejected(in); not_run(in, NotRun::budget); },
           "not_run"_verdict, 12),
      same("interrupted while it ran", [](In& in) { hang(in, Phase::replay); in.context->hang.reset(); in.context->ended = "interrupted"; },
           "not_run"_verdict, 21),

      // Refusals.
      same("refused as expected", [](In& in) { expect_rejected(in); refuse(in); }, "pass.rejected"_verdict, 30),
      same("refused by another rule", [](In& in) { expect_rejected(in); refuse(in, "R071"); }, "fail.constraint"_verdict, 31),
      same("one rank refused by another rule",
           [](In& in) { expect_rejected(in); refuse(in); in.checks->ranks[1].refused->rule = "R071"; }, "fail.constraint"_verdict, 31),
      same("one rank did not refuse",
           [](In& in) { expect_rejected(in); refuse(in); in.checks->ranks[1].refused.reset(); }, "fail.constraint"_verdict, 31),
      same("refused after device work",
           [](In& in) { expect_rejected(in); refuse(in); in.checks->ranks[0].refused->device_initialised = true; },
           "fail.constraint"_verdict, 31),
      same("refused in phase build",
           [](In& in) { expect_rejected(in); refuse(in); in.checks->ranks[0].refused->phase = Phase::build; },
           "fail.constraint"_verdict, 31),
      {"accepted, and all else well", [](In& in) { expect_rejected(in); }, "fail.constraint"_verdict, "fail.constraint"_verdict, 32},
      same("accepted, and then hung", [](In& in) { expect_rejected(in); hang(in, Phase::replay); }, "fail.constraint"_verdict, 32),
      {"neither refused nor went on",
       [](In& in) { expect_rejected(in); for (auto& rank : in.checks->ranks) rank.last_phase = Phase::validate; },
       "fail.constraint"_verdict, "pass"_verdict, 32},
      same("refused, and a rank then died",
           [](In& in) { expect_rejected(in); refuse(in); in.context->ranks[1].exit = record::Exit{.kind = "signal", .value = 11}; },
           "fail.crash.signal"_verdict, 44),
      same("refused, and a rank left no whole evidence",
           [](In& in) { expect_rejected(in); refuse(in); in.checks->ranks[1].complete = false; }, "fail.silent"_verdict, 46),
      same("refused, and a rank is unknown to the judge",
           [](In& in) { expect_rejected(in); refuse(in); in.checks->ranks.pop_back(); }, "fail.silent"_verdict, 46),
      same("hung before it could refuse", [](In& in) { expect_rejected(in); hang(in, Phase::validate); },
           "fail.hang.validate"_verdict, 40),
      same("refused although nothing was to be", [](In& in) { refuse(in); }, "fail.constraint"_verdict, 33),
      same("one rank refused, the other hung waiting",
           [](In& in) { hang(in, Phase::init); in.checks->ranks[0].refused = record::Refusal{.rule = "G001", .message = {.what = "w", .next = "n"}}; },
           "fail.constraint"_verdict, 33),
      same("a refused fault", [](In& in) { expect_fault(in); refuse(in); }, "fail.constraint"_verdict, 33),

      // Ranks that did not come back.
      same("the missing rank met an error first",
           [](In& in) { hang(in, Phase::teardown_comm); error(in, 1, Phase::capture, "cuda", 900); }, "fail.capture"_verdict, 41),
      same("a waiting rank met a communication error",
           [](In& in) { hang(in, Phase::replay); error(in, 0, Phase::replay, "nccl", 6); }, "fail.hang.replay"_verdict, 40),
      same("error in capture", [](In& in) { error(in, 0, Phase::capture, "cuda", 900); }, "fail.capture"_verdict, 41),
      same("error in capture, and the process then died",
           [](In& in) { die(in, 0, Phase::capture, "signal", 6); error(in, 0, Phase::capture, "cuda", 900); }, "fail.capture"_verdict, 41),
      same("out of memory", [](In& in) { error(in, 1, Phase::replay, "cuda", 2); }, "fail.memory.oom"_verdict, 42),
      same("CUDA error", [](In& in) { error(in, 1, Phase::replay, "cuda", 700); }, "fail.crash.cuda"_verdict, 43),
      same("NCCL error", [](In& in) { error(in, 1, Phase::init, "nccl", 3); }, "fail.crash.nccl"_verdict, 43),
      same("MPI error", [](In& in) { error(in, 1, Phase::teardown_comm, "mpi", 1); }, "fail.crash.mpi"_verdict, 43),
      same("exception", [](In& in) { error(in, 1, Phase::build, "exception"); }, "fail.crash.exception"_verdict, 43),
      same("the earlier of two errors counts",
           [](In& in) { error(in, 0, Phase::teardown_comm, "nccl", 6); error(in, 1, Phase::replay, "cuda", 700); },
           "fail.crash.cuda"_verdict, 43),
      same("died by a signal", [](In& in) { die(in, 1, Phase::replay, "signal", 11); }, "fail.crash.signal"_verdict, 44),
      same("died by a signal, and a peer noticed",
           [](In& in) { die(in, 1, Phase::replay, "signal", 11); error(in, 0, Phase::replay, "mpi", 1); },
           "fail.crash.signal"_verdict, 44),
      same("died by a signal, and a peer then hung",
           [](In& in) { hang(in, Phase::replay); die(in, 0, Phase::replay, "signal", 11); }, "fail.crash.signal"_verdict, 44),
      same("a peer ended with a status after an error elsewhere",
           [](In& in) { die(in, 1, Phase::replay, "exited", 1); error(in, 0, Phase::replay, "cuda", 700); },
           "fail.crash.cuda"_verdict, 43),
      same("ended with a status", [](In& in) { die(in, 1, Phase::replay, "exited", 3); }, "fail.crash.exception"_verdict, 45),
      same("died after the case, in its process's teardown",
           [](In& in) { in.context->ranks[0].exit = record::Exit{.kind = "signal", .value = 11}; }, "fail.crash.signal"_verdict, 44),
      same("ended with a status after the case",
           [](In& in) { in.context->ranks[0].exit = record::Exit{.kind = "exited", .value = 1}; }, "fail.crash.exception"_verdict, 45),
      same("ended with status 0 before the case did", [](In& in) { die(in, 1, Phase::replay, "exited", 0); }, "fail.silent"_verdict, 46),
      same("dead and without checks", [](In& in) { die(in, 1, Phase::replay, "signal", 11); in.checks.reset(); },
           "fail.crash.signal"_verdict, 44),

      // Silence.
      same("no checks.json", [](In& in) { in.checks.reset(); }, "fail.silent"_verdict, 46),
      same("incomplete evidence", [](In& in) { in.checks->ranks[1].complete = false; }, "fail.silent"_verdict, 46),
      same("a rank without evidence", [](In& in) { in.checks->ranks[1] = {.rank = 1}; }, "fail.silent"_verdict, 46),
      same("a rank that the judge does not know", [](In& in) { in.checks->ranks.pop_back(); }, "fail.silent"_verdict, 46),
      same("a rank that the launcher does not know", [](In& in) { in.context->ranks.pop_back(); }, "fail.silent"_verdict, 46),
      same("no case_end of a rank", [](In& in) { in.context->ranks[1].case_ended = false; }, "fail.silent"_verdict, 46),
      same("ended for no stated reason", [](In& in) { in.context->ended = "killed"; }, "fail.silent"_verdict, 46),
      same("said to have died, and nobody did", [](In& in) { in.context->ended = "died"; }, "fail.silent"_verdict, 46),

      // Checks.
      same("numerics", [](In& in) { result(in, "D01.lockstep", Result::fail); }, "fail.numerics"_verdict, 60),
      same("not replayed", [](In& in) { result(in, "D43.replays", Result::fail); }, "fail.not_replayed"_verdict, 60),
      same("capture differs", [](In& in) { result(in, "D19.capture_status", Result::fail); }, "fail.capture"_verdict, 60),
      same("configuration", [](In& in) { result(in, "D28.effective_config", Result::fail); }, "fail.constraint"_verdict, 60),
      same("log", [](In& in) { result(in, "D21.log_clean", Result::fail); }, "fail.crash.cuda"_verdict, 60),
      same("eager does not repeat", [](In& in) { result(in, "D02.eager_repeats", Result::fail); }, "fail.eager"_verdict, 60),
      same("memory growth", [](In& in) { result(in, "D60.growth", Result::fail); }, "fail.memory.growth"_verdict, 60),
      same("memory leak", [](In& in) { result(in, "D60.leak", Result::fail); }, "fail.memory.leak"_verdict, 60),
      same("too slow", [](In& in) { result(in, "D61.speed", Result::fail); }, "fail.perf"_verdict, 60),
      same("a slow step that the launcher let pass", [](In& in) { result(in, "D22.progress", Result::fail); },
           "fail.hang.teardown_process"_verdict, 60),
      same("a check that no table knows", [](In& in) { result(in, "D99.unknown", Result::fail); }, "fail.silent"_verdict, 60),
      same("capture before numerics",
           [](In& in) { result(in, "D01.lockstep", Result::fail); result(in, "D19.capture_status", Result::fail); },
           "fail.capture"_verdict, 60),
      same("eager before everything of the graph",
           [](In& in) { result(in, "D19.capture_status", Result::fail); result(in, "D02.eager_repeats", Result::fail); },
           "fail.eager"_verdict, 60),

      // Left behind.
      same("processes", [](In& in) { in.context->cleanup.processes = {"4711 rank"}; }, "fail.cleanup.process"_verdict, 61),
      same("GPU memory", [](In& in) { in.context->cleanup.gpu_memory = {{{.gpu = 0, .bytes = 4096}}}; },
           "fail.cleanup.gpu_memory"_verdict, 61),
      same("GPU memory measured and clean", [](In& in) { in.context->cleanup.gpu_memory.emplace(); }, "pass"_verdict, 90),
      same("shared memory", [](In& in) { in.context->cleanup.shm = {"/dev/shm/x"}; }, "fail.cleanup.shm"_verdict, 61),
      same("ports", [](In& in) { in.context->cleanup.ports = {29500}; }, "fail.cleanup.port"_verdict, 61),
      same("files", [](In& in) { in.context->cleanup.files = {"/tmp/x"}; }, "fail.cleanup.file"_verdict, 61),
      same("wrong numbers before what was left", [](In& in) { result(in, "D01.lockstep", Result::fail); in.context->cleanup.ports = {1}; },
           "fail.numerics"_verdict, 60),

      // Nothing shown.
      same("a required check unexercised", [](In& in) { result(in, "D01.lockstep", Result::unexercised); }, "unexercised"_verdict, 65),
      same("a required check not applicable", [](In& in) { result(in, "D01.lockstep", Result::not_applicable); }, "unexercised"_verdict, 65),
      same("a required check without a result", [](In& in) { in.plan.required_checks.push_back("D43.replays"); in.checks->checks.erase(in.checks->checks.begin() + 1); },
           "unexercised"_verdict, 65),
      same("a required check that no table knows", [](In& in) { in.plan.required_checks.push_back("D99.unknown"); },
           "unexercised"_verdict, 65),
      same("a required check that this device cannot show", [](In& in) { in.plan.required_checks.push_back("D18.coverage"); result(in, "D18.coverage", Result::unexercised); },
           "pass"_verdict, 90),
      same("a check nobody requires unexercised", [](In& in) { result(in, "D61.speed", Result::unexercised); }, "pass"_verdict, 90),
      same("no check at all", [](In& in) { in.plan.required_checks = {}; in.checks->checks = {}; }, "unexercised"_verdict, 66),

      // The eager arm.
      {"hang in phase eager", [](In& in) { hang(in, Phase::eager); }, "fail.eager"_verdict, "fail.hang.eager"_verdict, 89},
      {"error in phase eager", [](In& in) { error(in, 0, Phase::eager, "cuda", 700); }, "fail.eager"_verdict, "fail.crash.cuda"_verdict, 89},
      {"death in phase eager", [](In& in) { die(in, 0, Phase::eager, "signal", 8); }, "fail.eager"_verdict, "fail.crash.signal"_verdict, 89},
      {"out of memory in phase eager", [](In& in) { error(in, 0, Phase::eager, "cuda", 2); }, "fail.eager"_verdict, "fail.memory.oom"_verdict, 89},

      // Planted faults.
      {"killed", [](In& in) { expect_fault(in); result(in, "D04.learning_rate", Result::fail); }, "pass.killed"_verdict,
       "fail.numerics"_verdict, 81},
      {"killed, with others", [](In& in) { expect_fault(in); result(in, "D04.learning_rate", Result::fail); result(in, "D01.lockstep", Result::fail); },
       "pass.killed"_verdict, "fail.numerics"_verdict, 81},
      {"killed by a hang", [](In& in) { expect_fault(in, "D22"); hang(in, Phase::replay); result(in, "D22.progress", Result::fail); },
       "pass.killed"_verdict, "fail.hang.replay"_verdict, 81},
      {"killed by an error in capture",
       [](In& in) { expect_fault(in, "D19"); error(in, 0, Phase::capture, "cuda", 900); result(in, "D19.capture_status", Result::fail); },
       "pass.killed"_verdict, "fail.capture"_verdict, 81},
      {"killed in the eager arm, which its detector watches",
       [](In& in) { expect_fault(in, "D02"); result(in, "D02.eager_repeats", Result::fail); }, "pass.killed"_verdict, "fail.eager"_verdict, 81},
      {"hung in init, which no planted fault does",
       [](In& in) { expect_fault(in, "D22"); hang(in, Phase::init); result(in, "D22.progress", Result::fail); },
       "fail.hang.init"_verdict, "fail.hang.init"_verdict, 40},
      {"hung in the eager arm, which no planted fault does",
       [](In& in) { expect_fault(in, "D22"); hang(in, Phase::eager); result(in, "D22.progress", Result::fail); }, "fail.eager"_verdict,
       "fail.hang.eager"_verdict, 89},
      {"killed, and left something behind",
       [](In& in) { expect_fault(in); result(in, "D04.learning_rate", Result::fail); in.context->cleanup.shm = {"/dev/shm/x"}; },
       "fail.cleanup.shm"_verdict, "fail.numerics"_verdict, 61},
      {"survived", [](In& in) { expect_fault(in); }, "fail.survived"_verdict, "pass"_verdict, 83},
      {"killed elsewhere", [](In& in) { expect_fault(in); result(in, "D01.lockstep", Result::fail); }, "fail.survived"_verdict,
       "fail.numerics"_verdict, 83},
      {"killed elsewhere by the launcher", [](In& in) { expect_fault(in); hang(in, Phase::replay); in.checks.reset(); }, "fail.survived"_verdict,
       "fail.hang.replay"_verdict, 83},
      {"survived a detector that looked, while another check did not",
       [](In& in) { expect_fault(in); result(in, "D01.lockstep", Result::unexercised); }, "fail.survived"_verdict, "unexercised"_verdict, 83},
      {"its detector did not look", [](In& in) { expect_fault(in); result(in, "D04.learning_rate", Result::unexercised); },
       "unexercised"_verdict, "pass"_verdict, 65},
      same("its detector, which is required, did not look",
           [](In& in) {
             expect_fault(in);
             in.plan.required_checks.push_back("D04.learning_rate");
             result(in, "D04.learning_rate", Result::unexercised);
           },
           "unexercised"_verdict, 65),
      {"its detector, which is required, was dropped",
       [](In& in) {
         expect_fault(in);
         in.plan.required_checks.push_back("D04.learning_rate");
         in.checks->checks.pop_back();
       },
       "fail.survived"_verdict, "unexercised"_verdict, 83},
      {"its detector cannot look on this device",
       [](In& in) { expect_fault(in, "D18"); in.plan.required_checks = {"D18.coverage"}; result(in, "D18.coverage", Result::unexercised); },
       "unexercised"_verdict, "pass"_verdict, 80},
      {"its detector left no result", [](In& in) { expect_fault(in, "D15"); }, "fail.survived"_verdict, "pass"_verdict, 83},
      {"harmless, with evidence", [](In& in) { expect_fault(in); in.harmless_because = "seen in 100 replays"; }, "pass.killed"_verdict,
       "pass"_verdict, 82},
      {"said to be harmless, and bites elsewhere",
       [](In& in) { expect_fault(in); in.harmless_because = "x"; result(in, "D01.lockstep", Result::fail); }, "fail.survived"_verdict,
       "fail.numerics"_verdict, 83},
      {"a fault on failing infrastructure", [](In& in) { expect_fault(in); in.context->infra = record::Infra{.kind = "gpu", .why = "Xid 79"}; },
       "infra.gpu"_verdict, "infra.gpu"_verdict, 20},
      {"a fault, interrupted", [](In& in) { expect_fault(in); in.context->ended = "interrupted"; }, "not_run"_verdict, "not_run"_verdict, 21},

      // Hazards.
      {"works as expected", [](In& in) { hazard(in, "pass"); }, "pass"_verdict, "pass"_verdict, 84},
      {"refused as expected of a hazard", [](In& in) { hazard(in, "pass.rejected"); refuse(in); }, "pass"_verdict, "pass.rejected"_verdict, 84},
      {"hangs as expected", [](In& in) { hazard(in, "fail.hang"); hang(in, Phase::replay); }, "xfail"_verdict, "fail.hang.replay"_verdict, 84},
      {"fails in eager as expected", [](In& in) { hazard(in, "fail.eager"); hang(in, Phase::eager); }, "xfail"_verdict, "fail.hang.eager"_verdict, 84},
      {"no longer bites", [](In& in) { hazard(in, "fail.hang"); }, "xpass"_verdict, "pass"_verdict, 85},
      {"fails otherwise", [](In& in) { hazard(in, "fail.hang"); result(in, "D01.lockstep", Result::fail); }, "fail.numerics"_verdict,
       "fail.numerics"_verdict, 60},
      {"fails in eager unexpectedly", [](In& in) { hazard(in, "fail.hang.replay"); hang(in, Phase::eager); }, "fail.eager"_verdict,
       "fail.hang.eager"_verdict, 89},
      {"a hazard that shows nothing", [](In& in) { hazard(in, "pass"); result(in, "D01.lockstep", Result::unexercised); },
       "unexercised"_verdict, "unexercised"_verdict, 65},

      // Known issues.
      {"shows", [](In& in) { known_issue(in, "fail.hang.replay", "2027-03-01"); hang(in, Phase::replay); }, "xfail"_verdict,
       "fail.hang.replay"_verdict, 86},
      {"shows on its last day", [](In& in) { known_issue(in, "fail.numerics", "2026-11-21"); result(in, "D01.lockstep", Result::fail); },
       "xfail"_verdict, "fail.numerics"_verdict, 86},
      {"shows in eager", [](In& in) { known_issue(in, "fail.eager", "2027-03-01"); error(in, 0, Phase::eager, "cuda", 700); },
       "xfail"_verdict, "fail.crash.cuda"_verdict, 86},
      {"shows and has expired", [](In& in) { known_issue(in, "fail.numerics", "2026-11-20"); result(in, "D01.lockstep", Result::fail); },
       "fail.numerics"_verdict, "fail.numerics"_verdict, 87},
      {"no longer shows", [](In& in) { known_issue(in, "fail.numerics", "2027-03-01"); }, "xpass"_verdict, "pass"_verdict, 88},
      {"fails in another way", [](In& in) { known_issue(in, "fail.hang", "2027-03-01"); result(in, "D01.lockstep", Result::fail); },
       "fail.numerics"_verdict, "fail.numerics"_verdict, 60},
      {"fails in eager and is known for another", [](In& in) { known_issue(in, "fail.hang.replay", "2027-03-01"); hang(in, Phase::eager); },
       "fail.eager"_verdict, "fail.hang.eager"_verdict, 89},
      {"a known issue that shows nothing", [](In& in) { known_issue(in, "fail.hang", "2027-03-01"); result(in, "D01.lockstep", Result::unexercised); },
       "unexercised"_verdict, "unexercised"_verdict, 65},
  };
  for (std::size_t i = 0; i < record::kPhaseCount; ++i) {
    const auto phase = static_cast<Phase>(i);
    if (phase != Phase::eager)
      rows.push_back(same("hang", [phase](In& in) { hang(in, phase); }, Verdict::hang(phase), 40));
  }
  for (const char* kind : {"node", "gpu", "launch", "scheduler", "container", "disk", "network", "preempted"})
    rows.push_back(same("infrastructure", [kind](In& in) {
                          hang(in, Phase::replay);
                          in.context->infra = record::Infra{.kind = kind, .why = "w"};
                        },
                        *Verdict::from("infra." + std::string(kind)), 20));
  return rows;
}

TEST(Outcome, OfEveryRowIsItsVerdict) {
  for (const Row& row : rows()) {
    OutcomeInput input = healthy_case();
    row.change(input);
    const Outcome seen = outcome(input, effects());
    EXPECT_EQ(seen.verdict.text(), row.verdict.text()) << row.name << ": " << seen.reason;
    EXPECT_EQ(seen.observed.text(), row.observed.text()) << row.name << ": " << seen.reason;
    EXPECT_EQ(seen.rule, row.rule) << row.name << ": " << seen.reason;
    EXPECT_FALSE(seen.reason.empty()) << row.name;
    for (const record::Failing& failing : seen.failing) {
      EXPECT_FALSE(failing.message.what.empty()) << row.name;
      EXPECT_FALSE(failing.message.next.empty()) << row.name;
    }
    if (exit_code(seen.verdict, seen.rule) == record::ExitCode::product) {
      EXPECT_FALSE(seen.failing.empty()) << row.name;
    }
  }
}

TEST(Outcome, NoRowButTheHealthyOnesEndsAsAPass) {
  // Whatever a launcher or a judge leaves out of a healthy attempt, the verdict must not stay `pass`.
  const std::function<void(OutcomeInput&)> kChanges[] = {
      [](OutcomeInput& in) { in.context.reset(); },
      [](OutcomeInput& in) { in.checks.reset(); },
      [](OutcomeInput& in) { in.checks->checks.clear(); },
      [](OutcomeInput& in) { in.checks->ranks.clear(); },
      [](OutcomeInput& in) { in.context->ranks.clear(); },
      [](OutcomeInput& in) { in.context->world_size = 3; },
      [](OutcomeInput& in) { in.checks->ranks[0].last_phase.reset(); in.checks->ranks[0].complete = false; },
  };
  for (const auto& change : kChanges) {
    OutcomeInput input = healthy_case();
    change(input);
    EXPECT_NE(outcome(input, effects()).verdict, "pass"_verdict);
  }
}

TEST(Outcome, EveryVerdictHasARow) {
  std::set<std::string_view> missing;
  for (const record::VerdictRow& verdict : record::kVerdicts) missing.insert(verdict.text);
  for (const Row& row : rows()) {
    missing.erase(row.verdict.text());
    missing.erase(row.observed.text());
  }
  // Made by folding attempts, tested below.
  EXPECT_EQ(missing, (std::set<std::string_view>{"fail.isolation", "flaky"}));
}

TEST(Outcome, EveryRuleHasARowAndItsNumberIsUnique) {
  std::set<int> numbers;
  for (const Rule& rule : rules()) EXPECT_TRUE(numbers.insert(rule.number).second) << rule.number;
  for (const Row& row : rows()) {
    EXPECT_TRUE(row.rule == 70 || row.rule == 71 || std::any_of(rules().begin(), rules().end(), [&](const Rule& rule) {
      return rule.number == row.rule;
    })) << row.rule;
    numbers.erase(row.rule);
  }
  EXPECT_EQ(numbers, (std::set<int>{70, 71}));
}

TEST(Outcome, ExitCodeIsTheVerdictsUnlessTheRuleSaysOtherwise) {
  using record::ExitCode;
  EXPECT_EQ(exit_code("unexercised"_verdict, 65), ExitCode::coverage);
  EXPECT_EQ(exit_code("unexercised"_verdict, 11), ExitCode::ok);
  EXPECT_EQ(exit_code("unexercised"_verdict, 80), ExitCode::ok);
  EXPECT_EQ(exit_code("not_run"_verdict, 12), ExitCode::interrupted);
  EXPECT_EQ(exit_code("not_run"_verdict, 13), ExitCode::coverage);
  EXPECT_EQ(exit_code("fail.numerics"_verdict, 87), ExitCode::product);
}

TEST(Outcome, AHangNamesTheMissingRankAndWhereItStopped) {
  OutcomeInput input = healthy_case();
  hang(input, Phase::replay);
  input.context->ranks[1].arm = "lockstep";
  input.context->ranks[1].step = 2;
  input.context->ranks[1].collective = record::Collective{.sequence = 16, .op = "all_reduce", .group = "tp"};
  const Outcome seen = outcome(input, effects());
  ASSERT_FALSE(seen.failing.empty());
  EXPECT_EQ(seen.failing[0].rank, 1);
  EXPECT_EQ(record::to_text(seen.failing[0].message),
            "rank 1 is missing; got silent for 5101 ms in phase replay, arm lockstep, step 2, last collective 16 all_reduce "
            "in tp; want a sign of life within 5000 ms; ranks 0 wait for it; next: ./graphproof repro "
            "20261121-101500-3f2a/9d2c0f6a1b3e4d57");
  EXPECT_EQ(seen.phase, Phase::replay);
}

TEST(Outcome, CountsChecksAndListsTheFailingOnes) {
  OutcomeInput input = healthy_case();
  result(input, "D01.lockstep", Result::fail);
  result(input, "D61.speed", Result::unexercised);
  result(input, "D60.leak", Result::not_applicable);
  const Outcome seen = outcome(input, effects());
  EXPECT_EQ(seen.counts, (record::CheckCounts{.pass = 2, .fail = 1, .unexercised = 1, .not_applicable = 1}));
  ASSERT_EQ(seen.failing.size(), 1u);
  EXPECT_EQ(seen.failing[0].check, "D01.lockstep");
}

// ---- folding ---------------------------------------------------------------------------------------------------------

Outcome of(Verdict verdict, int rule) {
  return {.verdict = verdict, .observed = verdict, .rule = rule, .reason = std::string(verdict.text())};
}

TEST(Fold, AFailureThatPassesAloneIsOfIsolation) {
  for (const Verdict alone : {"pass"_verdict, "pass.rejected"_verdict, "pass.killed"_verdict, "xfail"_verdict}) {
    const Outcome folded = fold(of("fail.numerics"_verdict, 60), of(alone, 90));
    EXPECT_EQ(folded.verdict, "fail.isolation"_verdict);
    EXPECT_EQ(folded.observed, "fail.numerics"_verdict);
    EXPECT_EQ(folded.rule, 70);
    EXPECT_NE(folded.reason.find("ends fail.numerics in its batch and " + std::string(alone.text()) + " alone"), std::string::npos);
  }
}

TEST(Fold, AFailureAloneCounts) {
  const Outcome folded = fold(of("fail.crash.cuda"_verdict, 43), of("fail.numerics"_verdict, 60));
  EXPECT_EQ(folded.verdict, "fail.numerics"_verdict);
  EXPECT_EQ(folded.rule, 60);
}

TEST(Fold, AnAttemptThatShowedNothingHidesNoFailure) {
  for (const Verdict alone : {"infra.gpu"_verdict, "not_run"_verdict, "unexercised"_verdict}) {
    const Outcome folded = fold(of("fail.numerics"_verdict, 60), of(alone, 65));
    EXPECT_EQ(folded.verdict, "fail.numerics"_verdict) << alone.text();
  }
}

TEST(Confirm, SomeFailuresAreFlakyAndAllAreNot) {
  const Outcome failed = of("fail.numerics"_verdict, 60), passed = of("pass"_verdict, 90);
  const Outcome kSome[] = {failed, passed, failed};
  const Outcome kAll[] = {failed, failed};
  const Outcome kNone[] = {passed, passed};
  EXPECT_EQ(confirm(failed, kSome).verdict, "flaky"_verdict);
  EXPECT_EQ(confirm(failed, kSome).rule, 71);
  EXPECT_NE(confirm(failed, kSome).reason.find("2 of 3 confirmations failed"), std::string::npos);
  EXPECT_EQ(confirm(failed, kNone).verdict, "flaky"_verdict);
  EXPECT_EQ(confirm(failed, kAll).verdict, "fail.numerics"_verdict);
}

// ---- faults ----------------------------------------------------------------------------------------------------------

TEST(FaultStatus, FollowsFromTheRecord) {
  using record::FaultStatus;
  struct StatusRow {
    const char* name;
    std::function<void(OutcomeInput&)> change;
    FaultStatus status;
  };
  const StatusRow kRows[] = {
      {"killed", [](OutcomeInput& in) { result(in, "D04.learning_rate", Result::fail); }, FaultStatus::killed},
      {"killed, unclean",
       [](OutcomeInput& in) { result(in, "D04.learning_rate", Result::fail); in.context->cleanup.ports = {1}; }, FaultStatus::killed},
      {"killed elsewhere", [](OutcomeInput& in) { result(in, "D01.lockstep", Result::fail); }, FaultStatus::killed_elsewhere},
      {"killed elsewhere by a crash", [](OutcomeInput& in) { die(in, 0, Phase::replay, "signal", 11); }, FaultStatus::killed_elsewhere},
      {"survived", [](OutcomeInput&) {}, FaultStatus::survived},
      {"harmless", [](OutcomeInput& in) { in.harmless_because = "x"; }, FaultStatus::harmless},
      {"unexercised", [](OutcomeInput& in) { result(in, "D04.learning_rate", Result::unexercised); }, FaultStatus::unexercised},
      {"eager fails", [](OutcomeInput& in) { hang(in, Phase::eager); }, FaultStatus::unexercised},
      {"never came as far", [](OutcomeInput& in) { hang(in, Phase::init); }, FaultStatus::unexercised},
      {"not run", [](OutcomeInput& in) { not_run(in, NotRun::interrupted); }, FaultStatus::unexercised},
      {"infrastructure", [](OutcomeInput& in) { in.context->infra = record::Infra{.kind = "gpu", .why = "w"}; }, FaultStatus::unexercised},
      {"not on this device", [](OutcomeInput& in) { skip(in, "unexercised"_verdict); }, FaultStatus::unexercised},
      {"refused", [](OutcomeInput& in) { refuse(in); }, FaultStatus::unexercised},
  };
  for (const StatusRow& row : kRows) {
    OutcomeInput input = healthy_case();
    expect_fault(input);
    row.change(input);
    const auto record = make_record(input, outcome(input, effects()), "20261121-101500-3f2a", "");
    EXPECT_EQ(name(fault_status(input.plan.expect, record)), name(row.status)) << row.name;
  }
}

}  // namespace
}  // namespace graphproof::reports
