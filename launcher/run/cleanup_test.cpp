// What a case leaves on the host is found and named in its verdict, and what goes by itself is not.
// Each row plants one leftover.
#include <dlfcn.h>

#include <fstream>
#include <set>
#include <string>

#include "launcher/host/system_v.h"
#include "launcher/testing/run_of_fakes.h"

namespace graphproof::launcher {
namespace {

namespace fs = std::filesystem;

struct CleanupTest : RunOfFakes {
  ~CleanupTest() override {
    for (const char* variable : {"GRAPHPROOF_FAKE_NVML", "GRAPHPROOF_FAKE_NVML_PROCESSES"})
      unsetenv(variable);
  }

  /// Gives the run a GPU of the tests' libnvidia-ml with 500 MiB in use, on which cases run one
  /// after the other.
  void use_one_gpu() {
    const fs::path used = folder.parent_path() / "used",
                   processes = folder.parent_path() / "processes";
    std::ofstream(used) << 500 << "\n";
    setenv("GRAPHPROOF_FAKE_NVML", used.c_str(), 1);
    setenv("GRAPHPROOF_FAKE_NVML_PROCESSES", processes.c_str(), 1);
    const std::string library =
        fs::read_symlink("/proc/self/exe").parent_path() / "libfake_nvml.so";
    ASSERT_NE(dlopen(library.c_str(), RTLD_NOW | RTLD_GLOBAL), nullptr) << dlerror();
    setup.run.device = "cuda";
    setup.run.slots = 1;
    setup.gpus = {"0"};
  }
};

struct Planted {
  const char* script;
  const char* verdict;  // of a case that is the last of its processes; "": see hidden()
  const char* named;    // in the record's first failing message
};

const Planted kPlanted[] = {
    {"good replay 0", "pass", ""},
    {"daemon build 1", "fail.cleanup.process", "graphproof_fake"},
    {"file build 0", "fail.cleanup.file", "left-by-a-case"},
    {"shm build 1", "fail.cleanup.shm", "/dev/shm/graphproof-fake-"},
    {"mapped_shm build 0", "fail.cleanup.shm", "/dev/shm/fake-without-a-process"},
    {"semaphore build 1", "fail.cleanup.shm", "/dev/shm/sem.fake-"},
    {"system_v build 0", "fail.cleanup.shm", "System V "},
    {"hidden_port build 0", "", ""},
    {"brief_daemon compare 1", "pass", ""},
};

/// A process without session and mark is found by its control group; where there is none, by the
/// port on which it listens.
Planted hidden() {
  const bool group = Cgroup::make("cleanup-test-" + std::to_string(getpid())) != nullptr;
  return group ? Planted{"", "fail.cleanup.process", "sleep"}
               : Planted{"", "fail.cleanup.port", ""};
}

TEST_F(CleanupTest, WhatIsThereAfterTheLastProcessIsTheLastCases) {
  std::vector<record::PlanLine> plan;
  for (const Planted& row : kPlanted)
    plan.push_back(fake_line(static_cast<int>(plan.size()), 2, row.script, "process"));
  const auto of_fakes = [] {
    std::set<std::string> names;
    for (const auto& entry : fs::directory_iterator("/dev/shm"))
      if (const std::string name = entry.path().filename(); name.find("fake-") != std::string::npos)
        names.insert(name);
    return names;
  };
  const std::set<std::string> before =
      of_fakes();  // of another program, or of a test that was killed
  std::set<std::string> system_v_before;
  for (const SystemV& object : own_system_v()) system_v_before.insert(object.name());
  const auto result = go(plan);
  for (std::size_t i = 0; i < std::size(kPlanted); ++i) {
    const record::Record& record = result.cases[i].record;
    const Planted wanted = *kPlanted[i].verdict != 0 ? kPlanted[i] : hidden();
    EXPECT_EQ(verdict(result, i), wanted.verdict) << kPlanted[i].script << ": " << record.reason;
    if (record.failing.empty()) continue;
    EXPECT_NE(record.failing[0].message.got.find(wanted.named), std::string::npos)
        << record.failing[0].message.got;
    EXPECT_EQ(record.failing[0].message.want, "nothing that was not there before");
  }
  EXPECT_EQ(of_fakes(), before) << "the next case starts clean";
  std::string kinds;
  for (const record::Record& record : journal())
    if (record.reason.find("System V") != record.reason.npos) kinds = record.reason;
  for (const char* kind : {"semaphores", "shared memory", "messages"})
    EXPECT_NE(kinds.find(std::string("System V ") + kind), kinds.npos) << kinds;
  for (const SystemV& object : own_system_v())
    EXPECT_TRUE(system_v_before.contains(object.name())) << object.name() << " was left";
}

TEST_F(CleanupTest, WhatACaseLeavesToTheNextOneOfItsProcessesIsTheFirstCases) {
  const Planted rows[] = {{"daemon build 0 1", "fail.cleanup.process", "graphproof_fake"},
                          {"file build 0 1", "fail.cleanup.file", "left-by-a-case"},
                          {"shm build 0 1", "fail.cleanup.shm", "/dev/shm/graphproof-fake-"},
                          {"semaphore build 0 1", "fail.cleanup.shm", "/dev/shm/sem.fake-"},
                          {"port build 0 1", "fail.cleanup.port", ""},
                          {"brief_daemon build 0 1", "pass", ""}};
  std::vector<record::PlanLine> plan;
  for (const Planted& row : rows) {
    plan.push_back(fake_line(static_cast<int>(plan.size()), 1, row.script));
    plan.push_back(fake_line(static_cast<int>(plan.size()), 1, row.script));
    plan.push_back(fake_line(static_cast<int>(plan.size()), 1, row.script));
  }
  go(plan);
  std::map<std::string, record::Record> first;
  for (const record::Record& record : journal()) first.emplace(record.case_id, record);
  for (std::size_t i = 0; i < std::size(rows); ++i) {
    const record::Record& record = first.at(plan[3 * i].id);
    EXPECT_EQ(record.verdict.text(), rows[i].verdict) << rows[i].script << ": " << record.reason;
    EXPECT_NE(record.reason.find(rows[i].named), std::string::npos) << record.reason;
  }
}

TEST_F(CleanupTest, GpuMemoryThatStaysIsTheCases) {
  ASSERT_NO_FATAL_FAILURE(use_one_gpu());
  // Each case has an environment of its own, so that none is prestarted.
  const auto result =
      go({fake_line(1, 1, "", "process"), fake_line(2, 1, "gpu_memory build 0", "process"),
          fake_line(3, 1, "good build 0", "process")});
  EXPECT_EQ(verdict(result, 0), "pass") << result.cases[0].record.reason;
  EXPECT_EQ(verdict(result, 1), "fail.cleanup.gpu_memory") << result.cases[1].record.reason;
  EXPECT_NE(result.cases[1].record.reason.find("134217728 bytes on GPU 0"), std::string::npos)
      << result.cases[1].record.reason;
  EXPECT_EQ(verdict(result, 2), "infra.gpu")
      << "it would be measured with memory that another process uses";
  EXPECT_NE(result.cases[2].record.reason.find(
                "too few are left: slots 0: 134217728 bytes stayed in use after batch b002"),
            std::string::npos)
      << result.cases[2].record.reason;
}

TEST_F(CleanupTest, AServerOfTheMultiProcessServiceIsTheMachinesAndHidesNothing) {
  ASSERT_NO_FATAL_FAILURE(use_one_gpu());
  const auto result = go({fake_line(1, 1, "mps_server build 0", "process"),
                          fake_line(2, 1, "gpu_memory build 0", "process")});
  EXPECT_EQ(verdict(result, 0), "pass") << result.cases[0].record.reason;
  EXPECT_EQ(verdict(result, 1), "fail.cleanup.gpu_memory") << result.cases[1].record.reason;
  EXPECT_NE(result.cases[1].record.reason.find("134217728 bytes on GPU 0"), std::string::npos)
      << result.cases[1].record.reason;
}

/// A process that SIGKILL does not end, like a rank inside a driver call that never returns: it is
/// there at every look.
struct StuckInTheDriver : ProcessTable {
  explicit StuckInTheDriver(std::string mark) : mark(std::move(mark)) {}
  std::vector<Process> of(int session, std::string_view of_mark,
                          std::uint64_t looks_before) const override {
    std::vector<Process> found = ProcessTable::of(session, of_mark, looks_before);
    if (of_mark == mark)
      found.push_back(
          {.pid = kPid, .parent = 1, .session = session, .state = 'D', .command = "stuck-rank"});
    return found;
  }
  void send(int pid, int signal) const override {
    if (pid != kPid) ProcessTable::send(pid, signal);
  }
  static constexpr int kPid = 1 << 23;  // larger than any number that the kernel gives
  std::string mark;
};

TEST_F(CleanupTest, AProcessThatCannotBeEndedKeepsItsSlotAndTheOthersGoOn) {
  const StuckInTheDriver processes(setup.run.run_id + ".b001");
  setup.processes = &processes;
  setup.run.slots = 2;
  auto plan =
      std::vector{fake_line(0, 1, "hang replay 0", "process"), fake_line(1, 1, "", "process"),
                  fake_line(2, 2, "", "process"), fake_line(3, 1, "", "process")};
  plan[0].expected_seconds = 100;  // so that the wide case waits for it
  // The hang is planned, so that no debugger is waited for.
  plan[0].expect = {.kind = "hazard", .rule = "R035", .verdict = "fail.hang.replay"};
  const auto result = go(plan);
  EXPECT_EQ(verdict(result, 0), "xfail") << result.cases[0].record.reason;
  EXPECT_EQ(result.cases[0].record.observed.text(), "fail.hang.replay");
  ASSERT_EQ(result.cases[0].record.failing.size(), 2u);
  EXPECT_EQ(result.cases[0].record.failing[1].message.got,
            std::to_string(StuckInTheDriver::kPid) + " stuck-rank");
  EXPECT_EQ(verdict(result, 1), "pass");
  EXPECT_EQ(verdict(result, 3), "pass");
  EXPECT_EQ(verdict(result, 2), "infra.node");
  EXPECT_NE(result.cases[2].record.reason.find("too few are left: slots 0: held by " +
                                               std::to_string(StuckInTheDriver::kPid) +
                                               " stuck-rank of batch b001"),
            std::string::npos)
      << result.cases[2].record.reason;
  EXPECT_NE(notices.find("which even SIGKILL does not end"), std::string::npos) << notices;
}

}  // namespace
}  // namespace graphproof::launcher
