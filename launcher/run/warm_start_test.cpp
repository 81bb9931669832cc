// Ranks that are started before their slots are free: what that saves, and that no verdict depends
// on it.
#include <dlfcn.h>

#include "launcher/testing/run_of_fakes.h"

namespace graphproof::launcher {
namespace {

struct WarmStartTest : RunOfFakes {
  WarmStartTest() { setup.run.slots = 1; }

  std::vector<std::string> starts() const {
    std::vector<std::string> found;
    for (const record::Record& record : journal()) found.push_back(record.context.start);
    return found;
  }
};

std::vector<record::PlanLine> alone(int cases, const std::string& script) {
  std::vector<record::PlanLine> plan;
  for (int i = 0; i < cases; ++i) plan.push_back(fake_line(i, 1, script, "process"));
  return plan;
}

TEST_F(WarmStartTest, TheNextRanksStartWhileACaseRunsAndTheRecordSaysSo) {
  const auto plan = alone(5, "slow_start replay 0");
  setup.prestart = false;
  const double cold_seconds = go(plan).wall_seconds;
  EXPECT_EQ(starts(), (std::vector<std::string>{"cold", "cold", "cold", "cold", "cold"}));
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  setup.prestart = true;
  const auto result = go(plan);
  EXPECT_EQ(reports::exit_code(result), record::ExitCode::ok);
  const auto warm = starts();
  EXPECT_EQ(warm.front(), "cold") << "nothing ran before it";
  EXPECT_EQ(std::count(warm.begin(), warm.end(), "warm"), 4);
  EXPECT_LT(result.wall_seconds, cold_seconds);
}

TEST_F(WarmStartTest, AGpuIsLeftToTheCaseOnItWhereTheDriverDoesNotKnowWhoseItsMemoryIs) {
  const auto early = [this](const char* device) {
    std::filesystem::remove_all(folder);
    std::filesystem::create_directories(folder);
    setup.run.device = device;
    const auto plan = alone(2, "slow replay 0");
    bool seen = false;
    std::jthread watcher([&](std::stop_token stop) {
      const std::filesystem::path ended = folder / "cases" / plan[0].id / "attempt-1/context.json";
      while (!stop.stop_requested() && !seen && !std::filesystem::exists(ended)) {
        for (const std::string& host : host_folders())
          seen = seen || std::filesystem::exists(host + "/b002/go.device");
        seen = seen && !std::filesystem::exists(ended);
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
    });
    EXPECT_EQ(reports::exit_code(go(plan)), record::ExitCode::ok) << device;
    EXPECT_EQ(starts(), (std::vector<std::string>{"cold", "warm"})) << device;
    watcher.request_stop();
    watcher.join();
    return seen;
  };
  EXPECT_TRUE(early("sim"));
  setenv("GRAPHPROOF_FAKE_NVML", "/dev/null", 1);
  const std::string library =
      std::filesystem::read_symlink("/proc/self/exe").parent_path() / "libfake_nvml.so";
  ASSERT_NE(dlopen(library.c_str(), RTLD_NOW | RTLD_GLOBAL), nullptr) << dlerror();
  setup.gpus = {"0"};
  EXPECT_FALSE(early("cuda"));
  unsetenv("GRAPHPROOF_FAKE_NVML");
}

TEST_F(WarmStartTest, MemoryOfUnlistedProcessesIsMeasuredAgainWithoutThePrestartedRanks) {
  const std::filesystem::path processes = scratch.path() / "processes";
  setenv("GRAPHPROOF_FAKE_NVML", "/dev/null", 1);
  setenv("GRAPHPROOF_FAKE_NVML_PROCESSES", processes.c_str(), 1);
  const std::string library =
      std::filesystem::read_symlink("/proc/self/exe").parent_path() / "libfake_nvml.so";
  ASSERT_NE(dlopen(library.c_str(), RTLD_NOW | RTLD_GLOBAL), nullptr) << dlerror();
  setup.run.device = "cuda";
  setup.gpus = {"0"};
  // Prestarted ranks have memory that the driver does not list.
  const auto result = go(alone(2, "on_gpu replay 0"));
  for (std::size_t i = 0; i < 2; ++i)
    EXPECT_EQ(verdict(result, i), "pass") << result.cases[i].record.reason;
  std::ifstream lines(processes);
  const auto begun = std::count(std::istreambuf_iterator<char>(lines), {}, '\n');
  EXPECT_EQ(begun, 3) << "the second's ranks were ended, and begun again";
  EXPECT_EQ(notices.find("not leased again"), notices.npos) << notices;
  for (const char* variable : {"GRAPHPROOF_FAKE_NVML", "GRAPHPROOF_FAKE_NVML_PROCESSES"})
    unsetenv(variable);
}

TEST_F(WarmStartTest, RanksThatEndWhileTheyWaitCostNoVerdict) {
  const auto result = go(alone(3, "dies_before_begin replay 0"));
  for (std::size_t i = 0; i < 3; ++i)
    EXPECT_EQ(verdict(result, i), "pass") << result.cases[i].record.reason;
  EXPECT_EQ(starts(), (std::vector<std::string>{"cold", "cold", "cold"}));
  EXPECT_NE(
      notices.find("the ranks of batch b002 ended before their turn: no more ranks are started "
                   "before their turn"),
      notices.npos)
      << notices;
}

TEST_F(WarmStartTest, RanksThatCannotBeStartedAheadStartColdAndSayWhyTheyCannot) {
  const std::filesystem::path programs = scratch.path() / "bin";
  std::filesystem::create_directories(programs);
  std::filesystem::create_symlink(setup.rank_program, programs / "rank");
  std::filesystem::create_symlink(setup.rank_program.parent_path() / "graphproof-start",
                                  programs / "graphproof-start");
  setup.rank_program = programs / "rank";
  const auto plan = alone(3, "slow replay 0");
  // The ranks of the first case run by then. Those of the second were prestarted with them, unless
  // this machine is busy.
  std::jthread remover([&](std::stop_token stop) {
    while (!stop.stop_requested() && !std::filesystem::exists(folder / "cases" / plan[0].id /
                                                              "attempt-1/rank-0.evidence.jsonl"))
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    std::filesystem::remove(programs / "graphproof-start");
  });
  const auto result = go(plan);
  EXPECT_EQ(verdict(result, 0), "pass") << result.cases[0].record.reason;
  for (std::size_t i = verdict(result, 1) == "pass" ? 2 : 1; i < 3; ++i) {
    EXPECT_EQ(verdict(result, i), "infra.launch");
    EXPECT_NE(result.cases[i].record.reason.find(
                  "bin/graphproof-start': not found in PATH or not executable"),
              std::string::npos)
        << result.cases[i].record.reason;
  }
  EXPECT_EQ(starts().back(), "cold");
  EXPECT_NE(notices.find("ended before their turn: no more ranks are started before their turn"),
            notices.npos)
      << notices;
}

TEST_F(WarmStartTest, SlotsThatStayFreeTakeTheCaseWhoseRanksWaitElsewhere) {
  setup.run.slots = 2;
  std::vector<record::PlanLine> plan = alone(2, "slower replay 0");
  for (auto& line : plan) {
    line.expected_seconds = 30;
    line.limits_ms[record::Phase::teardown_comm] = 60000;
  }
  plan[1].expected_seconds = 20;
  plan.push_back(fake_line(2, 1, "slow replay 0", "process"));
  plan[2].expected_seconds = 25;
  const auto result = go(plan);
  for (std::size_t i = 0; i < 3; ++i)
    EXPECT_EQ(verdict(result, i), "pass") << result.cases[i].record.reason;
  EXPECT_EQ(starts(), (std::vector<std::string>{"cold", "cold", "cold"}))
      << "the second did not wait for the first";
}

TEST_F(WarmStartTest, CasesOfAnotherEnvironmentStartCold) {
  auto plan = alone(4, "");
  for (std::size_t i = 0; i < plan.size(); ++i)
    plan[i].environment["NCCL_ALGO"] = std::to_string(i);
  go(plan);
  EXPECT_EQ(starts(), (std::vector<std::string>{"cold", "cold", "cold", "cold"}));
}

TEST_F(WarmStartTest, NothingStartsWhileACaseMeasuresTime) {
  setup.effects["D99.time"] = {"fail.perf", {"sim"}};
  auto plan = alone(3, "slow replay 0");
  for (auto& line : plan) line.required_checks.push_back("D99.time");
  go(plan);
  EXPECT_EQ(starts(), (std::vector<std::string>{"cold", "cold", "cold"}));
}

TEST_F(WarmStartTest, AnInterruptEndsRanksThatWait) {
  setup.plan = alone(6, "slow replay 0");
  Background launcher([this] { return run(setup, {}); });
  ASSERT_TRUE(wait_for([this] { return std::filesystem::exists(folder / "batches" / "b002"); }));
  launcher.send(SIGINT);
  EXPECT_EQ(launcher.wait(), 5);
  EXPECT_EQ(marked(), std::vector<std::string>{});
  const auto result = go_on();
  EXPECT_EQ(reports::exit_code(result), record::ExitCode::ok);
  EXPECT_EQ(journal().size(), 6u);
}

TEST_F(WarmStartTest, ACaseThatFailsNextToPrestartedRanksIsRunAloneAndTheyGoOn) {
  auto plan = alone(4, "slow replay 0");
  plan[1].environment = {{"GRAPHPROOF_FAKE", "exit7 build 0"}};
  const auto result = go(plan);
  EXPECT_EQ(verdict(result, 0), "pass");
  EXPECT_EQ(verdict(result, 1), "fail.crash.exception");
  EXPECT_EQ(verdict(result, 2), "pass");
  EXPECT_EQ(verdict(result, 3), "pass");
}

}  // namespace
}  // namespace graphproof::launcher
