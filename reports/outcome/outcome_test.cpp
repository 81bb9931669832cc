// One row for each way in which a case can end. A row starts from a healthy attempt of two ranks
// and changes it. Two tests at the end require a row for every rule and every verdict.
#include "reports/outcome/outcome.h"

#include <gtest/gtest.h>

#include <functional>
#include <set>

#include "reports/outcome/faults.h"
#include "reports/testing/healthy_case.h"

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
          {"D45.sanitizer", {"fail.sanitizer", {"cuda"}}},
          {"D60.growth", {"fail.memory.growth", both}},
          {"D60.leak", {"fail.memory.leak", both}},
          {"D61.speed", {"fail.perf", both}}};
}

// ---- The changes that rows are made of.

using In = OutcomeInput;

/// A change of a healthy attempt. a + b applies a first, then b.
struct Change {
  std::function<void(In&)> apply;
};
Change change(std::function<void(In&)> apply) { return {std::move(apply)}; }
Change operator+(Change first, Change second) {
  return change([first, second](In& in) {
    first.apply(in);
    second.apply(in);
  });
}

Change nothing() {
  return change([](In&) {});
}

Change expect_fault(const char* detector = "D04", const char* verdict = "") {
  return change([=](In& in) {
    in.plan.expect = {.kind = "fault",
                      .fault = "M23",
                      .detector = detector,
                      .clean_twin = "1234567890abcdef",
                      .verdict = verdict};
  });
}

Change expect_rejected() {
  return change([](In& in) {
    in.plan.expect = {.kind = "rejected", .rule = "R035"};
    in.plan.required_checks = {};
  });
}

/// The case tests PyTorch, whose own code must refuse it.
Change expect_refusal_of_torch() {
  return change([](In& in) {
    in.plan.axes["subject"] = "torch";
    in.plan.expect = {.kind = "rejected", .rule = "P001", .says = "autocast caching"};
    in.plan.required_checks = {};
  });
}

/// Every rank's own code refused with these words.
Change refuse_saying(const char* words, Phase phase = Phase::capture, const char* rule = "P001") {
  return change([=](In& in) {
    for (record::RankEvidence& rank : in.checks->ranks) {
      rank.last_phase = phase;
      rank.refused = record::Refusal{
          .rule = rule,
          .phase = phase,
          .device_initialised = true,
          .message = {.what = "refused", .got = words, .want = "w", .why = "", .next = "n"}};
    }
    for (record::CheckResult& check : in.checks->checks) check.result = Result::not_applicable;
  });
}

Change known_issue(const char* verdict, const char* until) {
  return change([verdict, until](In& in) {
    in.plan.expect = {.kind = "known_issue",
                      .issue = "NCCL-1",
                      .verdict = verdict,
                      .owner = "comm",
                      .until = until};
    in.today = "2026-11-21";
  });
}

Change hazard(const char* verdict) {
  return change([verdict](In& in) {
    in.plan.expect = {.kind = "hazard", .rule = "R035", .verdict = verdict};
  });
}

/// Every rank refused the case by `rule`, so no check applies.
Change refuse(const char* rule = "R035") {
  return change([rule](In& in) {
    for (record::RankEvidence& rank : in.checks->ranks) {
      rank.last_phase = Phase::validate;
      rank.refused = record::Refusal{
          .rule = rule,
          .phase = Phase::validate,
          .device_initialised = false,
          .message = {.what = "refused", .got = "g", .want = "w", .why = "", .next = "n"}};
    }
    for (record::CheckResult& check : in.checks->checks) check.result = Result::not_applicable;
  });
}

/// Rank 1 is missing and rank 0 waits for it.
Change hang(Phase phase) {
  return change([phase](In& in) {
    in.context->ended = "killed";
    in.context->hang = record::Hang{.phase = phase,
                                    .limit_ms = 5000,
                                    .missing_rank = 1,
                                    .waiting_ranks = {0},
                                    .last_collective = {},
                                    .stacks = ""};
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
  });
}

/// The evidence of `rank` has an error.
Change error(std::size_t rank, Phase phase, const char* type, std::int64_t code = 0) {
  return change([=](In& in) {
    record::RankEvidence& evidence = in.checks->ranks.at(rank);
    evidence.complete = false;
    evidence.error = record::RankError{.phase = phase,
                                       .arm = "lockstep_graph",
                                       .type = type,
                                       .code = code,
                                       .call = "call",
                                       .message = "message"};
  });
}

/// `rank` is the first to die, and mpirun ends its peer.
Change die(int rank, Phase phase, const char* kind, int value) {
  return change([=](In& in) {
    in.context->ended = "died";
    in.context->first_dead =
        record::FirstDead{.rank = rank, .exit = {.kind = kind, .value = value}, .phase = phase};
    for (record::RankContext& one : in.context->ranks) {
      one.case_ended = false;
      one.phase = phase;
      one.exit = one.rank == rank ? record::Exit{.kind = kind, .value = value}
                                  : record::Exit{.kind = "signal", .value = 15};
    }
    for (record::RankEvidence& one : in.checks->ranks) one.complete = false;
  });
}

Change ends(const char* check, Result result) {
  return change([=](In& in) {
    for (record::CheckResult& one : in.checks->checks)
      if (one.check == check) {
        one.result = result;
        return;
      }
    in.checks->checks.push_back(check_result(check, result));
  });
}
Change fails(const char* check) { return ends(check, Result::fail); }
Change unexercised(const char* check) { return ends(check, Result::unexercised); }
Change not_applicable(const char* check) { return ends(check, Result::not_applicable); }

Change skip(Verdict verdict) {
  return change([verdict](In& in) {
    in.plan.skip = record::Skip{.verdict = verdict, .why = "needs 4 ranks"};
    in.context.reset();
    in.checks.reset();
  });
}

Change not_run(NotRun why) {
  return change([why](In& in) {
    in.context.reset();
    in.checks.reset();
    in.not_run = why;
  });
}

OutcomeInput changed(const Change& change) {
  OutcomeInput input = healthy_case();
  change.apply(input);
  return input;
}

struct Row {
  const char* name;
  Change made_by;
  Verdict verdict, observed;
  int rule;
};

Row same(const char* name, Change made_by, Verdict verdict, int rule) {
  return {name, std::move(made_by), verdict, verdict, rule};
}

std::vector<Row> rows() {
  std::vector<Row> rows = {
      same("a healthy case", nothing(), "pass"_verdict, 90),

      // Not run.
      same("skipped for GPUs", skip("skipped.gpus"_verdict), "skipped.gpus"_verdict, 10),
      same("skipped for architecture", skip("skipped.arch"_verdict), "skipped.arch"_verdict, 10),
      same("skipped for capability", skip("skipped.capability"_verdict),
           "skipped.capability"_verdict, 10),
      same("a fault this device cannot show", expect_fault() + skip("unexercised"_verdict),
           "unexercised"_verdict, 11),
      same("interrupted before it", not_run(NotRun::interrupted), "not_run"_verdict, 12),
      same("budget spent before it", not_run(NotRun::budget), "not_run"_verdict, 12),
      same("circuit breaker", not_run(NotRun::circuit_breaker), "not_run"_verdict, 13),
      same("--max-fail", not_run(NotRun::max_fail), "not_run"_verdict, 13),
      same("a full disk before it", not_run(NotRun::disk), "infra.disk"_verdict, 14),
      same("a fault that was not run", expect_fault() + not_run(NotRun::interrupted),
           "not_run"_verdict, 12),
      same("a negative case that was not run", expect_rejected() + not_run(NotRun::budget),
           "not_run"_verdict, 12),
      same("interrupted while it ran", hang(Phase::replay) + change([](In& in) {
                                         in.context->hang.reset();
                                         in.context->ended = "interrupted";
                                       }),
           "not_run"_verdict, 21),

      // Refusals.
      same("refused as expected", expect_rejected() + refuse(), "pass.rejected"_verdict, 30),
      same("refused by another rule", expect_rejected() + refuse("R071"), "fail.constraint"_verdict,
           31),
      same("one rank refused by another rule", expect_rejected() + refuse() + change([](In& in) {
                                                 in.checks->ranks[1].refused->rule = "R071";
                                               }),
           "fail.constraint"_verdict, 31),
      same("one rank did not refuse", expect_rejected() + refuse() + change([](In& in) {
                                        in.checks->ranks[1].refused.reset();
                                      }),
           "fail.constraint"_verdict, 31),
      same("refused after device work", expect_rejected() + refuse() + change([](In& in) {
                                          in.checks->ranks[0].refused->device_initialised = true;
                                        }),
           "fail.constraint"_verdict, 31),
      same("refused in phase build", expect_rejected() + refuse() + change([](In& in) {
                                       in.checks->ranks[0].refused->phase = Phase::build;
                                     }),
           "fail.constraint"_verdict, 31),
      same("refused by the subject's own code",
           expect_refusal_of_torch() +
               refuse_saying(
                   "RuntimeError: make_graphed_callables does not support the autocast caching"),
           "pass.rejected"_verdict, 34),
      same("an exception for another reason is no refusal by the rule",
           expect_refusal_of_torch() + refuse_saying("RuntimeError: out of memory"),
           "fail.constraint"_verdict, 35),
      same("refused by the subject's own code after a replay",
           expect_refusal_of_torch() + refuse_saying("autocast caching", Phase::replay),
           "fail.constraint"_verdict, 35),
      same("refused by the subject's own code under another rule",
           expect_refusal_of_torch() + refuse_saying("autocast caching", Phase::build, "P002"),
           "fail.constraint"_verdict, 35),
      same("a rule whose words are unknown is met by no exception",
           expect_refusal_of_torch() + refuse_saying("autocast caching") +
               change([](In& in) { in.plan.expect.says.clear(); }),
           "fail.constraint"_verdict, 35),
      same("one rank's own code did not refuse",
           expect_refusal_of_torch() + refuse_saying("autocast caching") +
               change([](In& in) { in.checks->ranks[1].refused.reset(); }),
           "fail.constraint"_verdict, 35),
      {"the subject's own code accepted, and all else well", expect_refusal_of_torch(),
       "fail.constraint"_verdict, "fail.constraint"_verdict, 32},
      {"accepted, and all else well", expect_rejected(), "fail.constraint"_verdict,
       "fail.constraint"_verdict, 32},
      same("accepted, and then hung", expect_rejected() + hang(Phase::replay),
           "fail.constraint"_verdict, 32),
      {"neither refused nor went on", expect_rejected() + change([](In& in) {
                                        for (auto& rank : in.checks->ranks)
                                          rank.last_phase = Phase::validate;
                                      }),
       "fail.constraint"_verdict, "pass"_verdict, 32},
      same("refused, and a rank then died", expect_rejected() + refuse() + change([](In& in) {
                                              in.context->ranks[1].exit =
                                                  record::Exit{.kind = "signal", .value = 11};
                                            }),
           "fail.crash.signal"_verdict, 44),
      same("refused, and a rank left no whole evidence",
           expect_rejected() + refuse() +
               change([](In& in) { in.checks->ranks[1].complete = false; }),
           "fail.silent"_verdict, 46),
      same("refused, and a rank is unknown to the judge",
           expect_rejected() + refuse() + change([](In& in) { in.checks->ranks.pop_back(); }),
           "fail.silent"_verdict, 46),
      same("hung before it could refuse", expect_rejected() + hang(Phase::validate),
           "fail.hang.validate"_verdict, 40),
      same("refused although nothing was to be", refuse(), "fail.constraint"_verdict, 33),
      same("one rank refused, the other hung waiting",
           hang(Phase::init) + change([](In& in) {
             in.checks->ranks[0].refused =
                 record::Refusal{.rule = "G001", .message = {.what = "w", .next = "n"}};
           }),
           "fail.constraint"_verdict, 33),
      same("a refused fault", expect_fault() + refuse(), "fail.constraint"_verdict, 33),

      // Ranks that hung, failed or died.
      same("the missing rank met an error first",
           hang(Phase::teardown_comm) + error(1, Phase::capture, "cuda", 900),
           "fail.capture"_verdict, 41),
      same("a waiting rank met a communication error",
           hang(Phase::replay) + error(0, Phase::replay, "nccl", 6), "fail.hang.replay"_verdict,
           40),
      same("error in capture", error(0, Phase::capture, "cuda", 900), "fail.capture"_verdict, 41),
      same("error in capture, and the process then died",
           die(0, Phase::capture, "signal", 6) + error(0, Phase::capture, "cuda", 900),
           "fail.capture"_verdict, 41),
      same("out of memory", error(1, Phase::replay, "cuda", 2), "fail.memory.oom"_verdict, 42),
      same("out of memory in capture", error(1, Phase::capture, "cuda", 2),
           "fail.memory.oom"_verdict, 42),
      same("CUDA error", error(1, Phase::replay, "cuda", 700), "fail.crash.cuda"_verdict, 43),
      same("NCCL error", error(1, Phase::init, "nccl", 3), "fail.crash.nccl"_verdict, 43),
      same("MPI error", error(1, Phase::teardown_comm, "mpi", 1), "fail.crash.mpi"_verdict, 43),
      same("exception", error(1, Phase::build, "exception"), "fail.crash.exception"_verdict, 43),
      same("the earlier of two errors counts",
           error(0, Phase::teardown_comm, "nccl", 6) + error(1, Phase::replay, "cuda", 700),
           "fail.crash.cuda"_verdict, 43),
      same("died by a signal", die(1, Phase::replay, "signal", 11), "fail.crash.signal"_verdict,
           44),
      same("died by a signal, and a peer noticed",
           die(1, Phase::replay, "signal", 11) + error(0, Phase::replay, "mpi", 1),
           "fail.crash.signal"_verdict, 44),
      same("died by a signal, and a peer then hung",
           hang(Phase::replay) + die(0, Phase::replay, "signal", 11), "fail.crash.signal"_verdict,
           44),
      same("a peer ended with a status after an error elsewhere",
           die(1, Phase::replay, "exited", 1) + error(0, Phase::replay, "cuda", 700),
           "fail.crash.cuda"_verdict, 43),
      same("ended with a status", die(1, Phase::replay, "exited", 3),
           "fail.crash.exception"_verdict, 45),
      same("died after the case, in its process's teardown", change([](In& in) {
             in.context->ranks[0].exit = record::Exit{.kind = "signal", .value = 11};
           }),
           "fail.crash.signal"_verdict, 44),
      same("ended with a status after the case", change([](In& in) {
             in.context->ranks[0].exit = record::Exit{.kind = "exited", .value = 1};
           }),
           "fail.crash.exception"_verdict, 45),
      same("ended with status 0 before the case did", die(1, Phase::replay, "exited", 0),
           "fail.silent"_verdict, 46),
      same("dead and without checks",
           die(1, Phase::replay, "signal", 11) + change([](In& in) { in.checks.reset(); }),
           "fail.crash.signal"_verdict, 44),

      // Incomplete reports.
      same("no checks.json", change([](In& in) { in.checks.reset(); }), "fail.silent"_verdict, 46),
      same("incomplete evidence", change([](In& in) { in.checks->ranks[1].complete = false; }),
           "fail.silent"_verdict, 46),
      same("a rank without evidence", change([](In& in) { in.checks->ranks[1] = {.rank = 1}; }),
           "fail.silent"_verdict, 46),
      same("a rank that the judge does not know",
           change([](In& in) { in.checks->ranks.pop_back(); }), "fail.silent"_verdict, 46),
      same("a rank that the launcher does not know",
           change([](In& in) { in.context->ranks.pop_back(); }), "fail.silent"_verdict, 46),
      same("no case_end of a rank", change([](In& in) { in.context->ranks[1].case_ended = false; }),
           "fail.silent"_verdict, 46),
      same("ended for no stated reason", change([](In& in) { in.context->ended = "killed"; }),
           "fail.silent"_verdict, 46),
      same("said to have died, and nobody did", change([](In& in) { in.context->ended = "died"; }),
           "fail.silent"_verdict, 46),

      // Checks.
      same("numerics", fails("D01.lockstep"), "fail.numerics"_verdict, 60),
      same("not replayed", fails("D43.replays"), "fail.not_replayed"_verdict, 60),
      same("capture differs", fails("D19.capture_status"), "fail.capture"_verdict, 60),
      same("configuration", fails("D28.effective_config"), "fail.constraint"_verdict, 60),
      same("log", fails("D21.log_clean"), "fail.crash.cuda"_verdict, 60),
      {"eager does not repeat", fails("D02.eager_repeats"), "fail.eager"_verdict,
       "fail.numerics"_verdict, 89},
      same("memory growth", fails("D60.growth"), "fail.memory.growth"_verdict, 60),
      same("memory leak", fails("D60.leak"), "fail.memory.leak"_verdict, 60),
      same("a kernel with an error, ahead of the wrong numbers that it may have made",
           fails("D01.lockstep") + fails("D45.sanitizer"), "fail.sanitizer"_verdict, 60),
      same("too slow", fails("D61.speed"), "fail.perf"_verdict, 60),
      same("a slow step that the launcher let pass", fails("D22.progress"),
           "fail.hang.teardown_process"_verdict, 60),
      same("a check that no table knows", fails("D99.unknown"), "fail.silent"_verdict, 60),
      same("capture before numerics", fails("D01.lockstep") + fails("D19.capture_status"),
           "fail.capture"_verdict, 60),
      {"eager before everything of the graph",
       fails("D19.capture_status") + fails("D02.eager_repeats"), "fail.eager"_verdict,
       "fail.numerics"_verdict, 89},

      // Left behind.
      same("processes", change([](In& in) { in.context->cleanup.processes = {"4711 rank"}; }),
           "fail.cleanup.process"_verdict, 61),
      same("GPU memory",
           change([](In& in) { in.context->cleanup.gpu_memory = {{{.gpu = 0, .bytes = 4096}}}; }),
           "fail.cleanup.gpu_memory"_verdict, 61),
      same("GPU memory measured and clean",
           change([](In& in) { in.context->cleanup.gpu_memory.emplace(); }), "pass"_verdict, 90),
      same("shared memory", change([](In& in) { in.context->cleanup.shm = {"/dev/shm/x"}; }),
           "fail.cleanup.shm"_verdict, 61),
      same("ports", change([](In& in) { in.context->cleanup.ports = {29500}; }),
           "fail.cleanup.port"_verdict, 61),
      same("files", change([](In& in) { in.context->cleanup.files = {"/tmp/x"}; }),
           "fail.cleanup.file"_verdict, 61),
      same("wrong numbers before what was left",
           fails("D01.lockstep") + change([](In& in) { in.context->cleanup.ports = {1}; }),
           "fail.numerics"_verdict, 60),

      // No check passed or failed.
      same("a required check unexercised", unexercised("D01.lockstep"), "unexercised"_verdict, 65),
      same("a required check not applicable", not_applicable("D01.lockstep"), "unexercised"_verdict,
           65),
      same("a required check without a result",
           change([](In& in) { in.checks->checks.erase(in.checks->checks.begin() + 1); }),
           "unexercised"_verdict, 65),
      same("a required check that no table knows",
           change([](In& in) { in.plan.required_checks.push_back("D99.unknown"); }),
           "unexercised"_verdict, 65),
      same("a required check that this device cannot show",
           change([](In& in) { in.plan.required_checks.push_back("D18.coverage"); }) +
               unexercised("D18.coverage"),
           "pass"_verdict, 90),
      same("a check nobody requires unexercised", unexercised("D61.speed"), "pass"_verdict, 90),
      same("no check at all", change([](In& in) {
             in.plan.required_checks = {};
             in.checks->checks = {};
           }),
           "unexercised"_verdict, 66),

      // The eager arm.
      {"hang in phase eager", hang(Phase::eager), "fail.eager"_verdict, "fail.hang.eager"_verdict,
       89},
      {"error in phase eager", error(0, Phase::eager, "cuda", 700), "fail.eager"_verdict,
       "fail.crash.cuda"_verdict, 89},
      {"death in phase eager", die(0, Phase::eager, "signal", 8), "fail.eager"_verdict,
       "fail.crash.signal"_verdict, 89},
      {"out of memory in phase eager", error(0, Phase::eager, "cuda", 2), "fail.eager"_verdict,
       "fail.memory.oom"_verdict, 89},

      // Planted faults.
      {"killed", expect_fault() + fails("D04.learning_rate"), "pass.killed"_verdict,
       "fail.numerics"_verdict, 81},
      {"killed, with others", expect_fault() + fails("D04.learning_rate") + fails("D01.lockstep"),
       "pass.killed"_verdict, "fail.numerics"_verdict, 81},
      {"killed by a hang", expect_fault("D22") + hang(Phase::replay) + fails("D22.progress"),
       "pass.killed"_verdict, "fail.hang.replay"_verdict, 81},
      {"killed by an error in capture",
       expect_fault("D19") + error(0, Phase::capture, "cuda", 900) + fails("D19.capture_status"),
       "pass.killed"_verdict, "fail.capture"_verdict, 81},
      {"killed in the eager arm, which its detector watches",
       expect_fault("D02") + fails("D02.eager_repeats"), "pass.killed"_verdict,
       "fail.numerics"_verdict, 81},
      {"killed in replays, and eager fails for another reason",
       expect_fault() + fails("D04.learning_rate") + fails("D02.eager_repeats"),
       "fail.eager"_verdict, "fail.numerics"_verdict, 89},
      {"killed in replays, and known to act in eager too",
       expect_fault("D04", "fail.eager") + fails("D04.learning_rate") + fails("D02.eager_repeats"),
       "pass.killed"_verdict, "fail.numerics"_verdict, 81},
      {"known to act in eager, and its detector did not see it",
       expect_fault("D04", "fail.eager") + fails("D02.eager_repeats"), "fail.eager"_verdict,
       "fail.numerics"_verdict, 89},
      {"hung in init, which no planted fault does",
       expect_fault("D22") + hang(Phase::init) + fails("D22.progress"), "fail.hang.init"_verdict,
       "fail.hang.init"_verdict, 40},
      {"hung in the eager arm, which no planted fault does",
       expect_fault("D22") + hang(Phase::eager) + fails("D22.progress"), "fail.eager"_verdict,
       "fail.hang.eager"_verdict, 89},
      {"killed, and left something behind",
       expect_fault() + fails("D04.learning_rate") +
           change([](In& in) { in.context->cleanup.shm = {"/dev/shm/x"}; }),
       "fail.cleanup.shm"_verdict, "fail.numerics"_verdict, 61},
      {"survived", expect_fault(), "fail.survived"_verdict, "pass"_verdict, 83},
      {"killed elsewhere", expect_fault() + fails("D01.lockstep"), "fail.survived"_verdict,
       "fail.numerics"_verdict, 83},
      {"killed elsewhere by the launcher",
       expect_fault() + hang(Phase::replay) + change([](In& in) { in.checks.reset(); }),
       "fail.survived"_verdict, "fail.hang.replay"_verdict, 83},
      {"survived a detector that looked, while another check did not",
       expect_fault() + unexercised("D01.lockstep"), "fail.survived"_verdict, "unexercised"_verdict,
       83},
      {"its detector did not look", expect_fault() + unexercised("D04.learning_rate"),
       "unexercised"_verdict, "pass"_verdict, 65},
      same("its detector, which is required, did not look",
           expect_fault() + change([](In& in) {
             in.plan.required_checks.push_back("D04.learning_rate");
           }) + unexercised("D04.learning_rate"),
           "unexercised"_verdict, 65),
      {"its detector, which is required, was dropped",
       expect_fault() + change([](In& in) {
         in.plan.required_checks.push_back("D04.learning_rate");
         in.checks->checks.pop_back();
       }),
       "fail.survived"_verdict, "unexercised"_verdict, 83},
      {"its detector cannot look on this device", expect_fault("D18") + change([](In& in) {
                                                    in.plan.required_checks = {"D18.coverage"};
                                                  }) + unexercised("D18.coverage"),
       "unexercised"_verdict, "pass"_verdict, 80},
      {"its detector left no result", expect_fault("D15"), "fail.survived"_verdict, "pass"_verdict,
       83},
      {"harmless, with evidence",
       expect_fault() + change([](In& in) { in.checks->harmless_because = "seen in 100 replays"; }),
       "pass.killed"_verdict, "pass"_verdict, 82},
      {"called harmless, but the case fails otherwise", expect_fault() + change([](In& in) {
                                                          in.checks->harmless_because = "x";
                                                        }) + fails("D01.lockstep"),
       "fail.survived"_verdict, "fail.numerics"_verdict, 83},
      {"a fault on failing infrastructure", expect_fault() + change([](In& in) {
                                              in.context->infra =
                                                  record::Infra{.kind = "gpu", .why = "Xid 79"};
                                            }),
       "infra.gpu"_verdict, "infra.gpu"_verdict, 20},
      {"a fault, interrupted",
       expect_fault() + change([](In& in) { in.context->ended = "interrupted"; }),
       "not_run"_verdict, "not_run"_verdict, 21},

      // Hazards.
      {"works as expected", hazard("pass"), "pass"_verdict, "pass"_verdict, 84},
      {"refused as expected of a hazard", hazard("pass.rejected") + refuse(), "pass"_verdict,
       "pass.rejected"_verdict, 84},
      {"hangs as expected", hazard("fail.hang") + hang(Phase::replay), "xfail"_verdict,
       "fail.hang.replay"_verdict, 84},
      {"fails in eager as expected", hazard("fail.eager") + hang(Phase::eager), "xfail"_verdict,
       "fail.hang.eager"_verdict, 84},
      {"does not occur", hazard("fail.hang"), "xpass"_verdict, "pass"_verdict, 85},
      {"fails otherwise", hazard("fail.hang") + fails("D01.lockstep"), "fail.numerics"_verdict,
       "fail.numerics"_verdict, 60},
      {"differs in eager, where numbers of a graph were expected to",
       hazard("fail.numerics") + fails("D02.eager_repeats"), "fail.eager"_verdict,
       "fail.numerics"_verdict, 89},
      {"fails in eager unexpectedly", hazard("fail.hang.replay") + hang(Phase::eager),
       "fail.eager"_verdict, "fail.hang.eager"_verdict, 89},
      {"a hazard without a result", hazard("pass") + unexercised("D01.lockstep"),
       "unexercised"_verdict, "unexercised"_verdict, 65},

      // Known issues.
      {"still fails", known_issue("fail.hang.replay", "2027-03-01") + hang(Phase::replay),
       "xfail"_verdict, "fail.hang.replay"_verdict, 86},
      {"still fails on its last day",
       known_issue("fail.numerics", "2026-11-21") + fails("D01.lockstep"), "xfail"_verdict,
       "fail.numerics"_verdict, 86},
      {"still fails in eager",
       known_issue("fail.eager", "2027-03-01") + error(0, Phase::eager, "cuda", 700),
       "xfail"_verdict, "fail.crash.cuda"_verdict, 86},
      {"still fails and has expired",
       known_issue("fail.numerics", "2026-11-20") + fails("D01.lockstep"), "fail.numerics"_verdict,
       "fail.numerics"_verdict, 87},
      {"no longer fails", known_issue("fail.numerics", "2027-03-01"), "xpass"_verdict,
       "pass"_verdict, 88},
      {"fails in another way", known_issue("fail.hang", "2027-03-01") + fails("D01.lockstep"),
       "fail.numerics"_verdict, "fail.numerics"_verdict, 60},
      {"fails in eager and is known for another",
       known_issue("fail.hang.replay", "2027-03-01") + hang(Phase::eager), "fail.eager"_verdict,
       "fail.hang.eager"_verdict, 89},
      {"a known issue without a result",
       known_issue("fail.hang", "2027-03-01") + unexercised("D01.lockstep"), "unexercised"_verdict,
       "unexercised"_verdict, 65},
  };
  for (std::size_t i = 0; i < record::kPhaseCount; ++i) {
    const auto phase = static_cast<Phase>(i);
    if (phase != Phase::eager) rows.push_back(same("hang", hang(phase), Verdict::hang(phase), 40));
  }
  for (const char* kind :
       {"node", "gpu", "launch", "scheduler", "container", "disk", "network", "preempted"})
    rows.push_back(same("infrastructure", hang(Phase::replay) + change([kind](In& in) {
                                            in.context->infra =
                                                record::Infra{.kind = kind, .why = "w"};
                                          }),
                        *Verdict::from("infra." + std::string(kind)), 20));
  return rows;
}

TEST(Outcome, OfEveryRowIsItsVerdict) {
  for (const Row& row : rows()) {
    const Outcome seen = outcome(changed(row.made_by), effects());
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

TEST(Outcome, NothingThatIsLeftOutEndsAsAPass) {
  // If a launcher or a judge leaves anything out of a healthy attempt, the verdict must not stay
  // `pass`.
  const Change kChanges[] = {
      change([](In& in) { in.context.reset(); }),
      change([](In& in) { in.checks.reset(); }),
      change([](In& in) { in.checks->checks.clear(); }),
      change([](In& in) { in.checks->ranks.clear(); }),
      change([](In& in) { in.context->ranks.clear(); }),
      change([](In& in) { in.context->world_size = 3; }),
      change([](In& in) { in.checks->ranks[0] = {.rank = 0}; }),
  };
  for (const Change& change : kChanges)
    EXPECT_NE(outcome(changed(change), effects()).verdict, "pass"_verdict);
}

TEST(Outcome, EveryVerdictHasARow) {
  std::set<std::string_view> missing;
  for (const record::VerdictRow& verdict : record::kVerdicts) missing.insert(verdict.text);
  for (const Row& row : rows()) {
    missing.erase(row.verdict.text());
    missing.erase(row.observed.text());
  }
  // fold() and confirm() give these; they are tested below.
  EXPECT_EQ(missing, (std::set<std::string_view>{"fail.isolation", "flaky"}));
}

TEST(Outcome, EveryRuleHasARowAndItsNumberIsUnique) {
  std::set<int> numbers;
  for (const Rule& rule : rules()) EXPECT_TRUE(numbers.insert(rule.number).second) << rule.number;
  for (const Row& row : rows()) {
    EXPECT_TRUE(row.rule == 70 || row.rule == 71 ||
                std::any_of(rules().begin(), rules().end(),
                            [&](const Rule& rule) { return rule.number == row.rule; }))
        << row.rule;
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
  OutcomeInput input = changed(hang(Phase::replay));
  input.context->ranks[1].arm = "lockstep";
  input.context->ranks[1].step = 2;
  input.context->ranks[1].collective =
      record::Collective{.sequence = 16, .op = "all_reduce", .group = "tp"};
  const Outcome seen = outcome(input, effects());
  ASSERT_FALSE(seen.failing.empty());
  EXPECT_EQ(seen.failing[0].rank, 1);
  EXPECT_EQ(
      record::to_text(seen.failing[0].message),
      "rank 1 is missing; got silent for 5101 ms in phase replay, arm lockstep, step 2, last "
      "collective 16 all_reduce "
      "in tp; want a sign of life within 5000 ms; ranks 0 wait for it; next: ./graphproof repro "
      "20261121-101500-3f2a/9d2c0f6a1b3e4d57");
  EXPECT_EQ(seen.phase, Phase::replay);
  // As of the time at which the launcher gave it up.
  input.context->hang->silent_ms = 5004;
  EXPECT_NE(
      record::to_text(outcome(input, effects()).failing[0].message).find("silent for 5004 ms"),
      std::string::npos);
}

TEST(Outcome, CountsChecksAndListsTheFailingOnes) {
  const Outcome seen = outcome(
      changed(fails("D01.lockstep") + unexercised("D61.speed") + not_applicable("D60.leak")),
      effects());
  EXPECT_EQ(seen.counts,
            (record::CheckCounts{.pass = 2, .fail = 1, .unexercised = 1, .not_applicable = 1}));
  ASSERT_EQ(seen.failing.size(), 1u);
  EXPECT_EQ(seen.failing[0].check, "D01.lockstep");
}

// ---- Several attempts of one case.

Outcome of(Verdict verdict, int rule) {
  return {
      .verdict = verdict, .observed = verdict, .rule = rule, .reason = std::string(verdict.text())};
}

TEST(Fold, AFailureThatPassesAloneIsOfIsolation) {
  for (const Verdict alone :
       {"pass"_verdict, "pass.rejected"_verdict, "pass.killed"_verdict, "xfail"_verdict}) {
    const Outcome folded = fold(of("fail.numerics"_verdict, 60), of(alone, 90));
    EXPECT_EQ(folded.verdict, "fail.isolation"_verdict);
    EXPECT_EQ(folded.observed, "fail.numerics"_verdict);
    EXPECT_EQ(folded.rule, 70);
    EXPECT_NE(folded.reason.find("ends fail.numerics in its batch and " +
                                 std::string(alone.text()) + " alone"),
              std::string::npos);
  }
}

TEST(Fold, AFailureAloneCounts) {
  const Outcome folded = fold(of("fail.crash.cuda"_verdict, 43), of("fail.numerics"_verdict, 60));
  EXPECT_EQ(folded.verdict, "fail.numerics"_verdict);
  EXPECT_EQ(folded.rule, 60);
}

TEST(Fold, AnAttemptWithoutAResultHidesNoFailure) {
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

// ---- The status of planted faults.

TEST(FaultStatus, FollowsFromTheRecord) {
  using record::FaultStatus;
  struct StatusRow {
    const char* name;
    Change made_by;
    FaultStatus status;
  };
  const StatusRow kRows[] = {
      {"killed", fails("D04.learning_rate"), FaultStatus::killed},
      {"killed, unclean",
       fails("D04.learning_rate") + change([](In& in) { in.context->cleanup.ports = {1}; }),
       FaultStatus::killed},
      {"killed elsewhere", fails("D01.lockstep"), FaultStatus::killed_elsewhere},
      {"killed elsewhere by a crash", die(0, Phase::replay, "signal", 11),
       FaultStatus::killed_elsewhere},
      {"survived", nothing(), FaultStatus::survived},
      {"harmless", change([](In& in) { in.checks->harmless_because = "x"; }),
       FaultStatus::harmless},
      {"unexercised", unexercised("D04.learning_rate"), FaultStatus::unexercised},
      {"eager fails", hang(Phase::eager), FaultStatus::unexercised},
      {"never came as far", hang(Phase::init), FaultStatus::unexercised},
      {"not run", not_run(NotRun::interrupted), FaultStatus::unexercised},
      {"infrastructure",
       change([](In& in) { in.context->infra = record::Infra{.kind = "gpu", .why = "w"}; }),
       FaultStatus::unexercised},
      {"not on this device", skip("unexercised"_verdict), FaultStatus::unexercised},
      {"refused", refuse(), FaultStatus::unexercised},
  };
  for (const StatusRow& row : kRows) {
    const OutcomeInput input = changed(expect_fault() + row.made_by);
    const auto record = make_record(input, outcome(input, effects()), "20261121-101500-3f2a", "");
    EXPECT_EQ(name(fault_status(input.plan.expect, record)), name(row.status)) << row.name;
  }
}

}  // namespace
}  // namespace graphproof::reports
