// GPUs that go wrong while a case runs on them: the case is tried once more on another GPU. That
// excuses no failure of its own.
#include <dlfcn.h>

#include <fstream>

#include "launcher/testing/run_of_fakes.h"

namespace graphproof::launcher {
namespace {

namespace fs = std::filesystem;

struct GpuTroubleTest : RunOfFakes {
  GpuTroubleTest() {
    setenv("GRAPHPROOF_FAKE_NVML", "/dev/null", 1);
    const std::string library =
        fs::read_symlink("/proc/self/exe").parent_path() / "libfake_nvml.so";
    EXPECT_NE(dlopen(library.c_str(), RTLD_NOW | RTLD_GLOBAL), nullptr) << dlerror();
    setup.run.device = "cuda";
    gpus(2);
  }
  ~GpuTroubleTest() override {
    for (const char* variable : {"GRAPHPROOF_FAKE_NVML", "GRAPHPROOF_FAKE_NVML_TROUBLE"})
      unsetenv(variable);
  }

  void gpus(int count) {
    setup.run.slots = count;
    setup.gpus.clear();
    for (int gpu = 0; gpu < count; ++gpu) setup.gpus.push_back(std::to_string(gpu));
  }
  /// The next run is on a machine without trouble so far.
  reports::RunResult go_well(std::vector<record::PlanLine> plan) {
    fs::remove_all(folder);
    fs::create_directories(folder);
    notices.clear();
    fs::remove(scratch.path() / "trouble");
    setenv("GRAPHPROOF_FAKE_NVML_TROUBLE", (scratch.path() / "trouble").c_str(), 1);
    return go(std::move(plan));
  }
  std::vector<std::string> verdicts_of(const std::string& case_id) const {
    std::vector<std::string> all;
    for (const record::Record& one : journal())
      if (one.case_id == case_id) all.emplace_back(one.verdict.text());
    return all;
  }
  /// All cases pass, and their ranks know that they do not have their GPUs to themselves.
  void expect_shared_and_passed(const reports::RunResult& result) const {
    for (const reports::CaseResult& one : result.cases) {
      EXPECT_EQ(one.record.verdict.text(), "pass") << one.record.reason;
      const std::string env =
          record::read_text(folder / "batches" / one.record.context.batch / "env");
      EXPECT_NE(env.find("GRAPHPROOF_SHARED_GPUS="), env.npos) << env;
    }
  }
  std::string lease_of(const record::Record& record) const {
    const std::string env = record::read_text(folder / "batches" / record.context.batch / "env");
    const std::size_t at = env.find("CUDA_VISIBLE_DEVICES=") + 21;
    return env.substr(at, env.find('\n', at) - at);
  }
};

TEST_F(GpuTroubleTest, ACaseThatMetAnIllGpuIsTriedOnceMoreOnAnother) {
  const std::pair<const char*, const char*> rows[] = {
      {"xid replay 0", "GPU 0: Xid 79: it has fallen off the bus"},
      {"ecc replay 0", "GPU 0: 1 memory errors that could not be corrected"},
      {"heat replay 0", "GPU 0: slowed down by heat"}};
  for (const auto& [script, why] : rows) {
    SCOPED_TRACE(script);
    const auto result = go_well({fake_line(1, 1, script, "process")});
    EXPECT_EQ(verdicts_of(result.cases[0].plan.id),
              (std::vector<std::string>{"infra.gpu", "pass"}));
    EXPECT_EQ(journal().at(0).reason, why);
    EXPECT_EQ(result.cases[0].record.again, "attempt 1 ended infra.gpu");
    EXPECT_EQ(lease_of(journal().at(0)), "0");
    EXPECT_EQ(lease_of(result.cases[0].record), "1");
    EXPECT_NE(record::read_text(folder / "batches/b001/driver.log").find(why), std::string::npos);
  }
}

TEST_F(GpuTroubleTest, WhatFailsElsewhereTooHasFailed) {
  const auto result = go_well({fake_line(1, 1, "xid_then_wrong replay 0", "process")});
  EXPECT_EQ(verdicts_of(result.cases[0].plan.id),
            (std::vector<std::string>{"infra.gpu", "fail.numerics"}));
}

TEST_F(GpuTroubleTest, WithoutAnotherGpuTheVerdictStands) {
  gpus(1);
  const auto result = go_well({fake_line(1, 1, "xid replay 0", "process")});
  EXPECT_EQ(verdicts_of(result.cases[0].plan.id), std::vector<std::string>{"infra.gpu"});
  EXPECT_EQ(reports::exit_code(result), record::ExitCode::infrastructure);
}

TEST_F(GpuTroubleTest, AProgramsXidExcusesNothingAndIsNotTriedAgain) {
  const auto result = go_well({fake_line(1, 1, "page_fault replay 0", "process")});
  EXPECT_EQ(verdicts_of(result.cases[0].plan.id).size(), 1u);
  EXPECT_EQ(verdict(result, 0).substr(0, 5), "fail.") << result.cases[0].record.reason;
  EXPECT_NE(record::read_text(folder / "batches/b001/driver.log").find("Xid 31: a page fault"),
            std::string::npos);
}

TEST_F(GpuTroubleTest, TheGpusThatMetTroubleAreAskedForASumBeforeTheirNextCase) {
  gpus(4);
  go_well({fake_line(1, 2, "xid replay 0", "process")});
  const auto first = notices.find("doctor: all_reduce: 4 ranks, 64 MiB: 0.42 ms, 240.2 GB/s");
  EXPECT_NE(first, notices.npos) << notices;
  EXPECT_NE(notices.find("doctor: all_reduce: 2 ranks, 64 MiB: 0.42 ms, 240.2 GB/s", first),
            notices.npos)
      << notices;
}

TEST_F(GpuTroubleTest, TheOtherCasesOfTheBatchRunElsewhere) {
  std::vector<record::PlanLine> plan;
  for (int number = 1; number <= 3; ++number)
    plan.push_back(fake_line(number, 1, "xid replay 0 1"));
  const auto result = go_well(plan);
  EXPECT_EQ(verdicts_of(plan[0].id), (std::vector<std::string>{"infra.gpu", "pass"}));
  for (std::size_t i = 1; i < plan.size(); ++i)
    EXPECT_EQ(verdicts_of(plan[i].id), std::vector<std::string>{"pass"}) << i;
  for (const reports::CaseResult& one : result.cases) EXPECT_EQ(lease_of(one.record), "1");
}

TEST_F(GpuTroubleTest, MoreRanksThanGpusShareThemAll) {
  setup.run.options.sharing.ranks_per_gpu = 2;
  const auto result = go_well({fake_line(1, 4, "", "process"), fake_line(2, 2, "", "process"),
                               fake_line(3, 3, "", "process")});
  for (const auto& [index, shared] : {std::pair{0, true}, {1, false}, {2, true}}) {
    const record::Record& one = result.cases[static_cast<std::size_t>(index)].record;
    EXPECT_EQ(one.verdict.text(), "pass") << one.reason;
    EXPECT_EQ(lease_of(one), "0,1");
    const std::string env = record::read_text(folder / "batches" / one.context.batch / "env");
    EXPECT_EQ(env.find("GRAPHPROOF_SHARED_GPUS=2\n") != env.npos, shared) << env;
  }
}

TEST_F(GpuTroubleTest, CasesShareAGpuAndItsMemoryIsNotJudged) {
  setup.run.options.sharing.cases_per_gpu = 2;
  setenv("GRAPHPROOF_FAKE_NVML", (scratch.path() / "gpu_memory").c_str(), 1);
  const auto result = go_well({fake_line(1, 2, "gpu_memory build 0", "process"),
                               fake_line(2, 2, "", "process"), fake_line(3, 1, "", "process")});
  expect_shared_and_passed(result);
  EXPECT_EQ(lease_of(result.cases[0].record), "0,1");
  EXPECT_EQ(lease_of(result.cases[1].record), "0,1");
}

TEST_F(GpuTroubleTest, ACaseOfMoreRanksThanGpusRunsBesideOthersToo) {
  setup.run.options.sharing = {.ranks_per_gpu = 2, .cases_per_gpu = 3};
  const auto result = go_well({fake_line(1, 4, "", "process"), fake_line(2, 1, "", "process"),
                               fake_line(3, 3, "", "process")});
  expect_shared_and_passed(result);
  EXPECT_EQ(lease_of(result.cases[0].record), "0,1");
  EXPECT_EQ(lease_of(result.cases[2].record), "0,1");
}

TEST_F(GpuTroubleTest, NoProcessIsKilledWhileItsCaseSharesAGpu) {
  // The cases behind the first one fail in their batch alone. When the second is judged, the third
  // runs: it is killed and begins anew as the first of a batch, or it ends and fails.
  std::vector<record::PlanLine> plan;
  for (int number = 1; number <= 4; ++number)
    plan.push_back(fake_line(number, 1, "leak replay 0 2"));
  gpus(1);
  const auto alone = go_well(plan);
  EXPECT_EQ(verdict(alone, 1), "fail.isolation") << alone.cases[1].record.reason;
  EXPECT_EQ(verdict(alone, 2), "pass") << alone.cases[2].record.reason;
  setup.run.options.sharing.cases_per_gpu = 2;
  const auto shared = go_well(plan);
  EXPECT_EQ(verdict(shared, 1), "fail.isolation") << shared.cases[1].record.reason;
  EXPECT_EQ(verdict(shared, 2), "fail.isolation") << shared.cases[2].record.reason;
  EXPECT_EQ(verdict(shared, 3), "pass")
      << "no other case may begin in these processes: " << shared.cases[3].record.reason;
}

TEST_F(GpuTroubleTest, AGpuThatIsIllTwiceIsNotLeasedAgain) {
  std::vector<record::PlanLine> plan;
  for (int number = 1; number <= 8; ++number)
    plan.push_back(fake_line(number, 1, "xid replay 0", "process"));
  const auto result = go_well(plan);
  for (std::size_t i = 0; i < plan.size(); ++i)
    EXPECT_EQ(verdict(result, i), "pass") << result.cases[i].record.reason;
  int ill = 0;
  for (const record::Record& one : journal()) ill += one.verdict.in("infra.gpu");
  EXPECT_EQ(ill, 2) << notices;
  EXPECT_NE(notices.find("slots 0 are not leased again: GPU 0: Xid 79: it has fallen off the bus"),
            std::string::npos)
      << notices;
}

}  // namespace
}  // namespace graphproof::launcher
