// The whole run loop over mpirun and ranks that follow a script (fake_rank.cpp): each way in which
// a rank can go wrong ends in its own verdict, with every record kept and no process left.
#include "launcher/testing/run_of_fakes.h"

#include <algorithm>
#include <fstream>
#include <set>

#include "launcher/batch/attempt_folder.h"
#include "launcher/host/listeners.h"
#include "reports/analysis/divergence.h"

namespace graphproof::launcher {
namespace {

namespace fs = std::filesystem;

struct LauncherRunTest : RunOfFakes {
  LauncherRunTest() {
    for (auto& [phase, limit_ms] : setup.run.options.limits_ms)
      if (phase != record::Phase::init) limit_ms = 700;
  }
};

record::PlanLine line(int number, int ranks, const std::string& script) {
  return fake_line(number, ranks, script);
}

TEST_F(LauncherRunTest, GoodRanksPassAndLeaveTheWholeFolder) {
  const auto result = go({line(1, 1, ""), line(2, 2, ""), line(3, 2, "")});
  for (std::size_t i = 0; i < 3; ++i)
    EXPECT_EQ(verdict(result, i), "pass") << result.cases[i].record.reason;
  EXPECT_EQ(reports::exit_code(result), record::ExitCode::ok);
  for (const char* file :
       {"run.json", "plan.jsonl", "journal.jsonl", "junit.xml", "summary.json", "summary.md",
        "faults.json", "batches/b001/batch.json", "batches/b001/command", "batches/b001/env"})
    EXPECT_TRUE(fs::exists(folder / file)) << file;
  const record::Context last = context(setup.plan[2].id);
  EXPECT_EQ(last.ended, "finished");
  EXPECT_EQ(last.start, "warm");
  ASSERT_EQ(last.ranks.size(), 2u);
  EXPECT_EQ(last.ranks[1].exit, (record::Exit{"exited", 0}));
  EXPECT_EQ(last.cleanup, record::Cleanup{});
  EXPECT_EQ(context(setup.plan[1].id).ranks[0].exit, std::nullopt)
      << "the process went on to another case";
}

TEST_F(LauncherRunTest, CasesOfOtherSubjectsRunInRanksOfTheUsersPython) {
  // The package is one whose ranks become those of this test, with the same arguments.
  const fs::path programs = folder.parent_path() / "programs", real = setup.rank_program;
  fs::create_directories(programs / "python/graphproof");
  fs::create_symlink(real, programs / "rank");
  fs::create_symlink(real.parent_path() / "graphproof-start", programs / "graphproof-start");
  std::ofstream(programs / "python/graphproof/__init__.py").flush();
  std::ofstream(programs / "python/graphproof/rank.py")
      << "import os, sys\nos.execv('" << real.string() << "', ['rank'] + sys.argv[1:])\n";
  // It starts the ranks as the real one does where it cannot fork them.
  std::ofstream(programs / "python/graphproof/starter.py")
      << "import os, sys\nos.execv(sys.argv[1], sys.argv[1:3] + ['/usr/bin/env', 'python3', '-m', "
         "'graphproof.rank'] + sys.argv[3:])\n";
  setup.rank_program = programs / "rank";
  setup.run.stack.python = "python3";
  record::PlanLine torch = line(2, 2, ""), wrong = line(3, 1, "wrong replay 0");
  torch.axes["subject"] = "torch";
  wrong.axes["subject"] = "fsdp2";
  wrong.isolation = "process";
  const auto result = go({line(1, 2, ""), torch, wrong});
  EXPECT_EQ(verdict(result, 0), "pass");
  EXPECT_EQ(verdict(result, 1), "pass") << result.cases[1].record.reason;
  EXPECT_EQ(verdict(result, 2), "fail.numerics") << "the search of divergence is not for them";
  const auto command = [&](std::size_t number) {
    return record::read_text(folder / "batches" / context(setup.plan[number].id).batch / "command");
  };
  EXPECT_EQ(command(0).find("python3"), std::string::npos);
  EXPECT_NE(command(1).find("/usr/bin/env python3 -m graphproof.starter /"), std::string::npos)
      << command(1);
  EXPECT_NE(command(1).find("/graphproof-start 2 /"), std::string::npos) << command(1);
  EXPECT_NE(command(2).find("graphproof-start 1 /usr/bin/env python3 -m graphproof.rank /"),
            std::string::npos)
      << command(2);
  EXPECT_EQ(notices.find("diverg"), std::string::npos) << notices;
}

TEST_F(LauncherRunTest, ACaseUnderComputeSanitizerHasAProcessAndALogOfItsOwn) {
  // It writes its log as the real one does, which tells nobody that a process died by a signal.
  const fs::path tools = folder.parent_path() / "tools";
  fs::create_directories(tools);
  std::ofstream(tools / "compute-sanitizer")
      << "#!/bin/sh\n"
         "while [ $# -gt 0 ]; do\n"
         "  case \"$1\" in\n"
         "    --log-file) log=$2; shift 2;;\n"
         "    --force-blocking-launches) shift;;\n"
         "    --*) shift 2;;\n"
         "    *) break;;\n"
         "  esac\n"
         "done\n"
         "printf '========= COMPUTE-SANITIZER\\n' >\"$log\"\n"
         "[ \"$GRAPHPROOF_COMPUTE_SANITIZER\" != racecheck ] || exit 255\n"
         "\"$@\" || { code=$?; [ $code -gt 128 ] && code=0; exit $code; }\n"
         "printf '========= ERROR SUMMARY: 0 errors, %s\\n' \"$GRAPHPROOF_COMPUTE_SANITIZER\" "
         ">>\"$log\"\n";
  fs::permissions(tools / "compute-sanitizer", fs::perms::owner_all);
  const std::string path = std::getenv("PATH");
  setenv("PATH", (tools.string() + ":" + path).c_str(), 1);
  record::PlanLine checked = line(2, 1, ""), dies = line(3, 1, "signal capture 0"),
                   refused = line(4, 1, "");
  for (record::PlanLine* one : {&checked, &dies, &refused}) {
    one->axes["sanitizer"] = one == &refused ? "racecheck" : "memcheck";
    one->isolation = "process";
  }
  const auto result = go({line(1, 1, ""), checked, dies, refused});
  setenv("PATH", path.c_str(), 1);
  const auto log = [&](std::size_t number) {
    return folder / "cases" / setup.plan[number].id / "attempt-1" / record::kSanitizerLog;
  };
  EXPECT_EQ(verdict(result, 0), "pass");
  EXPECT_FALSE(fs::exists(log(0)));
  EXPECT_EQ(verdict(result, 1), "pass") << result.cases[1].record.reason;
  EXPECT_EQ(record::read_text(log(1)),
            "========= COMPUTE-SANITIZER\n========= ERROR SUMMARY: 0 errors, memcheck\n");
  EXPECT_NE(context(setup.plan[0].id).batch, context(setup.plan[1].id).batch);
  EXPECT_EQ(verdict(result, 2), "fail.silent") << "the rank left no complete result";
  EXPECT_EQ(verdict(result, 3), "infra.launch") << "the tool did not start the rank";
  EXPECT_NE(result.cases[3].record.reason.find(log(3).string()), std::string::npos)
      << result.cases[3].record.reason;
}

struct BadRank {
  const char* script;
  const char* verdict;
  int exit_code;
};

const BadRank kBadRanks[] = {
    {"hang init 1", "fail.hang.init", 1},
    {"hang replay 1", "fail.hang.replay", 1},
    {"deaf teardown_comm 0", "fail.hang.teardown_comm", 1},
    {"garbage capture 0", "fail.hang.capture", 1},
    {"signal capture 1", "fail.crash.signal", 1},
    {"exit7 build 0", "fail.crash.exception", 1},
    {"terminated replay 1", "infra.preempted", 3},
    {"die_late replay 0", "fail.crash.signal", 1},
    {"daemon build 1", "fail.cleanup.process", 1},
    {"wrong replay 1", "fail.numerics", 1},
};

TEST_F(LauncherRunTest, EveryBadRankGetsItsOwnVerdictAndTheOthersGoOn) {
  setup.run.options.limits_ms[record::Phase::init] = 4000;
  std::vector<record::PlanLine> plan;
  for (const BadRank& row : kBadRanks) {
    plan.push_back(line(static_cast<int>(plan.size()), 2, row.script));
    plan.back().isolation = "process";  // one attempt each, because alone they do the same
  }
  plan.push_back(line(100, 1, ""));
  const auto result = go(plan);
  for (std::size_t i = 0; i < std::size(kBadRanks); ++i) {
    const record::Record& record = result.cases[i].record;
    EXPECT_EQ(verdict(result, i), kBadRanks[i].verdict)
        << kBadRanks[i].script << ": " << record.reason;
    EXPECT_EQ(record::value(reports::exit_code(record.verdict, record.rule)),
              kBadRanks[i].exit_code);
  }
  EXPECT_EQ(verdict(result, std::size(kBadRanks)), "pass");
  EXPECT_EQ(reports::exit_code(result), record::ExitCode::product);

  const record::Context hang = context(plan[1].id);
  ASSERT_TRUE(hang.hang);
  EXPECT_EQ(hang.hang->missing_rank, 1);
  EXPECT_EQ(hang.hang->waiting_ranks, std::vector<int>{0});
  // The rank that waits for it may have begun the phase, and so passed the limit, before it.
  EXPECT_GT(hang.hang->silent_ms, hang.hang->limit_ms / 2);
  EXPECT_EQ(hang.hang->went_on, false);
  EXPECT_EQ(hang.ended, "killed");
  EXPECT_TRUE(fs::exists(folder / "cases" / plan[1].id / "attempt-1/stacks/rank-1.threads"));
  const record::Context death = context(plan[4].id);
  ASSERT_TRUE(death.first_dead);
  EXPECT_EQ(death.first_dead->rank, 1);
  EXPECT_EQ(death.first_dead->exit, (record::Exit{"signal", SIGSEGV}));
  EXPECT_EQ(death.first_dead->phase, record::Phase::capture);
  EXPECT_EQ(context(plan[5].id).first_dead->exit, (record::Exit{"exited", 7}));
}

/// Every phase in which a rank can hang; teardown_process, which follows the last case, is the
/// script `die_late`.
constexpr record::Phase kPhases[] = {record::Phase::validate,       record::Phase::init,
                                     record::Phase::build,          record::Phase::eager,
                                     record::Phase::warmup,         record::Phase::capture,
                                     record::Phase::replay,         record::Phase::compare,
                                     record::Phase::teardown_graph, record::Phase::teardown_comm};

TEST_F(LauncherRunTest, ARankThatDiesInAnyPhaseIsNamedWithThatPhase) {
  std::vector<record::PlanLine> plan;
  for (const record::Phase phase : kPhases) {
    plan.push_back(line(static_cast<int>(plan.size()), 2,
                        "signal " + std::string(record::name(phase)) + " 1"));
    plan.back().isolation = "process";
  }
  const auto result = go(plan);
  for (std::size_t i = 0; i < std::size(kPhases); ++i) {
    const std::string phase(record::name(kPhases[i]));
    EXPECT_EQ(verdict(result, i),
              kPhases[i] == record::Phase::eager ? "fail.eager" : "fail.crash.signal")
        << phase;
    EXPECT_EQ(result.cases[i].record.observed.text(), "fail.crash.signal") << phase;
    const record::Context facts = context(plan[i].id);
    ASSERT_TRUE(facts.first_dead) << phase;
    EXPECT_EQ(facts.first_dead->rank, 1) << phase;
    EXPECT_EQ(facts.first_dead->phase, kPhases[i]) << phase;
  }
}

TEST_F(LauncherRunTest, ARankThatHangsInAnyPhaseIsNamedWithThatPhase) {
  setup.run.options.limits_ms[record::Phase::init] = 4000;
  std::vector<record::PlanLine> plan;
  for (const record::Phase phase : kPhases) {
    plan.push_back(
        line(static_cast<int>(plan.size()), 2, "hang " + std::string(record::name(phase)) + " 1"));
    plan.back().isolation = "process";
    // The hang is planned, so that no debugger is waited for and the circuit breaker does not see
    // ten cases that hang alike.
    plan.back().expect = {.kind = "fault",
                          .rule = {},
                          .fault = "M61",
                          .detector = "D22",
                          .clean_twin = "0",
                          .issue = {},
                          .verdict = {},
                          .owner = {},
                          .until = {}};
  }
  const auto result = go(plan);
  for (std::size_t i = 0; i < std::size(kPhases); ++i) {
    const std::string phase(record::name(kPhases[i]));
    EXPECT_EQ(result.cases[i].record.observed.text(), "fail.hang." + phase);
    const record::Context facts = context(plan[i].id);
    ASSERT_TRUE(facts.hang) << phase;
    EXPECT_EQ(facts.hang->missing_rank, 1) << phase;
    EXPECT_EQ(facts.hang->phase, kPhases[i]) << phase;
  }
}

TEST_F(LauncherRunTest, AMismatchIsFollowedByARunOfAllRanksThatNamesTheFirstDivergentTensor) {
  const auto result = go({line(1, 2, "wrong replay 1"), line(2, 2, "")});
  EXPECT_EQ(verdict(result, 0), "fail.numerics");
  const fs::path attempt = folder / result.cases[0].record.artefacts;
  EXPECT_EQ(reports::divergence_text(attempt, 2),
            "rank 1, step 3, microbatch 1, layer 0, attn, forward, aten::mul, element 17: eager "
            "0.125, graph 0.25 (190 of 2048 "
            "elements differ; 411 results before it agree)");
  EXPECT_NE(notices.find("case1: first divergent tensor: rank 1, step 3"), std::string::npos)
      << notices;
  EXPECT_FALSE(fs::exists(folder / result.cases[1].record.artefacts / "divergence"))
      << "the second case has passed";
}

TEST_F(LauncherRunTest, ALookForTheDivergentTensorThatFailsChangesNoVerdictAndEndsInItsTime) {
  for (const char* script : {"wrong_then_stuck replay 1", "wrong_then_dead replay 1"}) {
    SCOPED_TRACE(script);
    fs::remove_all(folder);
    fs::create_directories(folder);
    notices.clear();
    auto plan = std::vector{line(1, 2, script), line(2, 1, "")};
    plan[0].isolation = "process";
    const auto result = go(plan);
    EXPECT_EQ(verdict(result, 0), "fail.numerics");
    EXPECT_EQ(verdict(result, 1), "pass");
    EXPECT_EQ(record::read_journal(folder / "journal.jsonl").records.size(), 2u)
        << "a record comes of attempts alone";
    EXPECT_NE(notices.find(
                  "case1: first divergent tensor: not found: the run that searched for it failed"),
              std::string::npos)
        << notices;
  }
}

TEST_F(LauncherRunTest, TheDivergentTensorOfAPlantedFaultIsNotSearched) {
  auto plan = std::vector{line(1, 2, "wrong replay 1")};
  plan[0].expect = {.kind = "fault",
                    .rule = {},
                    .fault = "M23",
                    .detector = "D01",
                    .clean_twin = "0",
                    .issue = {},
                    .verdict = {},
                    .owner = {},
                    .until = {}};
  const auto result = go(plan);
  EXPECT_FALSE(fs::exists(folder / result.cases[0].record.artefacts / "divergence"));
}

TEST_F(LauncherRunTest, StatusZeroWithoutAResultIsSilence) {
  auto plan = std::vector{line(1, 1, "exit0 replay 0")};
  plan[0].isolation = "process";
  EXPECT_EQ(verdict(go(plan), 0), "fail.silent");
}

TEST_F(LauncherRunTest, ARankThatCrashesAfterGoodbyeNeverPasses) {
  // mpirun does not always name such a rank, so several are tried.
  std::vector<record::PlanLine> plan;
  for (int i = 0; i < 6; ++i) {
    plan.push_back(line(i, 2, "die_late replay 1"));
    plan.back().isolation = "process";
  }
  const auto result = go(plan);
  for (std::size_t i = 0; i < plan.size(); ++i)
    EXPECT_EQ(verdict(result, i), "fail.crash.signal") << result.cases[i].record.reason;
}

TEST_F(LauncherRunTest, WhatFailsOnlyInABatchIsAnIsolationFailureAndTheRestGoesOn) {
  const auto result =
      go({line(1, 1, "leak replay 0"), line(2, 1, "leak replay 0"), line(3, 1, "leak replay 0")});
  EXPECT_EQ(verdict(result, 0), "pass");
  EXPECT_EQ(verdict(result, 1), "fail.isolation");
  const auto journal = record::read_journal(folder / "journal.jsonl").records;
  std::set<std::pair<std::string, int>> attempts;
  for (const record::Record& record : journal)
    EXPECT_TRUE(attempts.emplace(record.case_id, record.attempt).second);
  EXPECT_TRUE(attempts.count({setup.plan[1].id, 1}));
  EXPECT_TRUE(attempts.count({setup.plan[1].id, 2}));
  EXPECT_EQ(context(setup.plan[1].id, 2).isolation, "process");
  EXPECT_EQ(result.cases.size(), 3u);
  EXPECT_NE(verdict(result, 2), "not_run");
}

TEST_F(LauncherRunTest, RanksThatEndBecauseTheirCaseHasFailedBlameNoOther) {
  const char* script = "fails capture 0 1";  // the first case of every batch
  setenv("GRAPHPROOF_FAKE_VERDICT_AFTER_MS", "2500", 1);
  go({line(1, 2, script), line(2, 2, script)});
  unsetenv("GRAPHPROOF_FAKE_VERDICT_AFTER_MS");
  const auto journal = record::read_journal(folder / "journal.jsonl").records;
  EXPECT_EQ(journal.size(), 4u) << "each in a batch, and alone";
  for (const record::Record& record : journal) {
    EXPECT_TRUE(record.verdict.text().starts_with("fail.")) << record.verdict.text();
    EXPECT_EQ(record.reason.find("before its first phase"), std::string::npos) << record.reason;
  }
}

TEST_F(LauncherRunTest, CasesThatTheRanksRefuseBeforeTheirTurnHoldUpNoOther) {
  const char* script = "second_first none 0";
  const auto result = go({line(1, 2, script), line(2, 2, script), line(3, 2, script)});
  for (std::size_t i = 0; i < 3; ++i)
    EXPECT_EQ(verdict(result, i), "pass") << result.cases[i].record.reason;
  EXPECT_EQ(record::read_journal(folder / "journal.jsonl").records.size(), 3u)
      << "a case was run again";
  EXPECT_FALSE(fs::exists(folder / "batches/b001/heartbeat.rejected"));
  EXPECT_EQ(context(setup.plan[1].id).ranks[0].exit, std::nullopt);
  EXPECT_EQ(context(setup.plan[2].id).ranks[0].exit, (record::Exit{"exited", 0}))
      << "it ended last";
}

TEST_F(LauncherRunTest, TheCaseThatWasRunLastAnswersForTheEndWhereverItIsListed) {
  const char* script = "second_first none 0";
  const auto result = go({line(1, 2, script), line(2, 2, script)});
  EXPECT_EQ(verdict(result, 0), "pass");
  EXPECT_EQ(verdict(result, 1), "pass");
  EXPECT_EQ(context(setup.plan[0].id).ranks[0].exit, (record::Exit{"exited", 0}));
  EXPECT_EQ(context(setup.plan[1].id).ranks[0].exit, std::nullopt);
}

TEST_F(LauncherRunTest, ACaseThatFailsAloneTooKeepsItsVerdictAndTheRestRuns) {
  auto plan = std::vector{line(1, 2, "signal replay 1"), line(2, 2, "signal replay 1")};
  const auto result = go(plan);
  EXPECT_EQ(verdict(result, 0), "fail.crash.signal");
  EXPECT_EQ(verdict(result, 1), "fail.crash.signal");
  EXPECT_EQ(record::read_journal(folder / "journal.jsonl").records.size(), 4u);
  EXPECT_NE(notices.find("failed in batch b001 ("), std::string::npos) << notices;
  EXPECT_NE(notices.find("; the case runs again"), std::string::npos)
      << "the failure is told at once: " << notices;
}

TEST_F(LauncherRunTest, AFaultRunsOnce) {
  auto plan = std::vector{line(1, 1, "wrong replay 0")};
  plan[0].axes["fault"] = "M23";
  plan[0].expect = {.kind = "fault",
                    .rule = {},
                    .fault = "M23",
                    .detector = "D01",
                    .clean_twin = "0",
                    .issue = {},
                    .verdict = {},
                    .owner = {},
                    .until = {}};
  EXPECT_EQ(verdict(go(plan), 0), "pass.killed");
  EXPECT_EQ(record::read_journal(folder / "journal.jsonl").records.size(), 1u);
}

TEST_F(LauncherRunTest, WithoutMpirunOneRankRunsAndSeveralOnSimAreInfrastructure) {
  const char* old = std::getenv("PATH");
  const std::string path = old != nullptr ? old : "";
  setenv("PATH", "/nonexistent", 1);
  setup.plan = {line(1, 1, ""), line(2, 2, "")};
  const auto result = run(setup, {});
  setenv("PATH", path.c_str(), 1);
  EXPECT_EQ(verdict(result, 0), "pass") << result.cases[0].record.reason;
  EXPECT_EQ(verdict(result, 1), "infra.launch");
  EXPECT_NE(result.cases[1].record.reason.find("can't start 'mpirun': not found in PATH"),
            std::string::npos)
      << result.cases[1].record.reason;
  EXPECT_EQ(reports::exit_code(result), record::ExitCode::infrastructure);
}

TEST_F(LauncherRunTest, AMissingRankProgramIsInfrastructure) {
  // Neither the program nor graphproof-start in its folder exists; mpirun is tried as well.
  for (const fs::path& program : {fs::path("/nonexistent/graphproof-rank-sim"),
                                  setup.rank_program.parent_path() / "nothing-there"}) {
    fs::remove_all(folder);
    fs::create_directories(folder);
    setup.rank_program = program;
    const auto result = go({line(1, 1, ""), line(2, 2, "")});
    for (std::size_t i = 0; i < 2; ++i)
      EXPECT_EQ(verdict(result, i), "infra.launch")
          << program << ": " << result.cases[i].record.reason;
  }
}

// On GPUs no rank uses MPI: each way to fail is reported by graphproof-start, and no process
// listens on a port.
TEST_F(LauncherRunTest, RanksWithoutMpiEndInTheSameVerdictsAndListenOnNoPort) {
  int looks = 0;
  listener.progress = [&](const reports::Progress&) {
    std::vector<int> pids{getpid()};
    for (const Process& process : processes_of(0, setup.run.run_id + "."))
      pids.push_back(process.pid);
    for (const auto& [socket, port] : listeners_of(pids)) ADD_FAILURE() << "port " << port;
    looks += pids.size() > 2;
  };
  setup.run.device = "cuda";
  setup.gpus = {"0", "1", "2", "3"};
  setup.run.options.limits_ms[record::Phase::init] = 4000;
  std::vector<record::PlanLine> plan;
  for (const BadRank& row : kBadRanks) {
    plan.push_back(line(static_cast<int>(plan.size()), 2, row.script));
    plan.back().isolation = "process";
  }
  plan.push_back(line(100, 4, ""));
  const auto result = go(plan);
  for (std::size_t i = 0; i < std::size(kBadRanks); ++i)
    EXPECT_EQ(verdict(result, i), kBadRanks[i].verdict)
        << kBadRanks[i].script << ": " << result.cases[i].record.reason;
  EXPECT_EQ(verdict(result, std::size(kBadRanks)), "pass");
  const record::Context death = context(plan[4].id);
  ASSERT_TRUE(death.first_dead);
  EXPECT_EQ(death.first_dead->rank, 1);
  EXPECT_EQ(death.first_dead->exit, (record::Exit{"signal", SIGSEGV}));
  EXPECT_EQ(context(plan[5].id).first_dead->exit, (record::Exit{"exited", 7}));
  const std::string command = record::read_text(folder / "batches/b001/command");
  EXPECT_EQ(command.find("mpirun"), command.npos) << command;
  EXPECT_GT(looks, 0);
}

TEST_F(LauncherRunTest, AJudgeThatDiesLeavesNoPass) {
  setup.judge_program = "/bin/false";
  auto plan = std::vector{line(1, 1, "")};
  plan[0].isolation = "process";
  EXPECT_EQ(verdict(go(plan), 0), "fail.silent");
}

struct InterruptTest : LauncherRunTest {
  /// Interrupts a run of forty cases after its first record. Returns how many records it leaves,
  /// which all pass, and no process does.
  std::size_t records_after_interrupt(const std::string& script) {
    setup.plan.clear();
    for (int i = 0; i < 40; ++i) setup.plan.push_back(line(i, 1, script));
    Background background([this] { return run(setup, {}); });
    for (int look = 0; look < 1000; ++look) {
      std::error_code absent;
      if (fs::exists(folder / "journal.jsonl", absent) &&
          fs::file_size(folder / "journal.jsonl", absent) > 0)
        break;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    background.send(SIGINT);
    EXPECT_EQ(background.wait(), record::value(record::ExitCode::interrupted));
    const auto records = record::read_journal(folder / "journal.jsonl").records;
    EXPECT_GE(records.size(), 2u);
    EXPECT_LT(records.size(), setup.plan.size());
    for (const record::Record& record : records)
      EXPECT_EQ(record.verdict.text(), "pass") << record.reason;
    const auto result = read_run(folder);
    EXPECT_EQ(result.ending, reports::Ending::interrupted);
    EXPECT_EQ(result.cases.size(), setup.plan.size());
    EXPECT_EQ(result.cases.back().record.verdict.text(), "not_run");
    EXPECT_EQ(marked(), std::vector<std::string>{});
    return records.size();
  }
  std::size_t begun() const {
    return static_cast<std::size_t>(std::ranges::count_if(setup.plan, [this](const auto& one) {
      return fs::exists(folder / attempt_folder(one.id, 1) / record::evidence_file_name(0));
    }));
  }
};

TEST_F(InterruptTest, LetsTheCaseEndAndWritesEverything) {
  const std::size_t records = records_after_interrupt("slow replay 0");
  EXPECT_EQ(begun(), records) << "a case was begun that did not end";
}

TEST_F(InterruptTest, EndsRanksThatGoOnWithOtherCases) {
  const std::size_t records = records_after_interrupt("heedless replay 0");
  EXPECT_GT(begun(), records) << "ranks that go on were not ended in a case";
}

}  // namespace
}  // namespace graphproof::launcher
