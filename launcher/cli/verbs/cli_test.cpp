// The command line: what is printed, what is refused, and the exit codes. No rank is started here.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <fstream>
#include <sstream>

#include "launcher/cli/run_options.h"
#include "launcher/cli/testing/command_under_test.h"
#include "launcher/run/run_folder.h"
#include "reports/record/run/run.h"

namespace graphproof::cli {
namespace {

namespace fs = std::filesystem;

using CliTest = CommandUnderTest;

struct Refused {
  std::vector<std::string> arguments;
  const char* message;
};

TEST_F(CliTest, UnknownWordsAreExitTwoAndTheNearestIsNamed) {
  const Refused rows[] = {
      {{"rum"}, "did you mean `run`?"},
      {{"run", "--porfile", "smoke"}, "did you mean `--profile`?"},
      {{"plan", "--profile", "smoky"}, "did you mean `smoke`?"},
      {{"plan", "--device", "cudaa"}, "did you mean `cuda`?"},
      {{"plan", "--where", "impll == none"}, "did you mean `impl`?"},
      {{"list", "axis"}, "did you mean `axes`?"},
      {{"rules", "R036"}, "R035"},
      {{"case", "imple=manual"}, "did you mean `impl`?"},
      {{"case", "impl=manuall"}, "did you mean `manual`?"},
      {{"explain"}, "CASE is required"},
      {{"report", "nowhere"}, "start one: graphproof run --profile smoke"},
      {{"plan", "--device", "sim", "--ranks-per-gpu", "0"}, "--ranks-per-gpu must be at least 1"},
      {{"plan", "--device", "sim", "--ranks-per-gpu", "2"}, "--ranks-per-gpu goes with GPUs"},
      {{"run", "--launcher", "slurm", "--device", "cuda", "--ranks-per-gpu", "2"},
       "--ranks-per-gpu and --cases-per-gpu go with --launcher local"},
      {{"plan", "--device", "sim", "--cases-per-gpu", "0"}, "--cases-per-gpu must be at least 1"},
      {{"plan", "--device", "sim", "--cases-per-gpu", "2"}, "--cases-per-gpu goes with GPUs"},
      {{"plan", "--matrix", "/nonexistent/m.json"}, "check the path /nonexistent/m.json"},
  };
  for (const Refused& row : rows) {
    const Printed printed = cli(row.arguments);
    EXPECT_EQ(printed.exit_code, 2) << row.arguments[0];
    EXPECT_NE(printed.err.find(row.message), std::string::npos) << printed.err;
    EXPECT_EQ(printed.out, "");
  }
}

TEST_F(CliTest, WithJsonAnErrorIsAnObjectToo) {
  const Printed printed = cli({"plan", "--profile", "smoky", "--json"});
  EXPECT_EQ(printed.exit_code, 2);
  EXPECT_EQ(nlohmann::json::parse(printed.out).at("got"), "smoky");
}

TEST_F(CliTest, AMissingRankProgramIsAUsageErrorAndStartsNoRun) {
  const Printed printed = cli({"run", "--profile", "smoke", "--device", "sim"});
  EXPECT_EQ(printed.exit_code, 2);
  EXPECT_NE(printed.err.find("graphproof-rank-sim"), std::string::npos) << printed.err;
  EXPECT_FALSE(fs::exists(top / "runs"));
  const Printed cuda = cli({"run", "--device", "cuda"});
  EXPECT_EQ(cuda.exit_code, 2);
  EXPECT_NE(cuda.err.find("use --device sim"), std::string::npos) << cuda.err;
}

/// Two GPUs that a rank program and the driver's library (fake_nvml.cpp) report. Nothing is started
/// on them.
struct GpusOfOneProcess : CommandUnderTest {
  GpusOfOneProcess() {
    const fs::path library = fs::read_symlink("/proc/self/exe").parent_path() / "libfake_nvml.so";
    EXPECT_NE(nvml_ = dlopen(library.c_str(), RTLD_NOW | RTLD_GLOBAL), nullptr) << dlerror();
    setenv("GRAPHPROOF_FAKE_NVML_MODE", "3", 1);  // EXCLUSIVE_PROCESS
    setenv("CUDA_VISIBLE_DEVICES", "2,3", 1);
    fs::create_directory(top / "bin");
    const record::Stack stack{.torch_version = "2.11.0",
                              .cuda_version = "13.0",
                              .nccl_version = "2.28.9",
                              .driver = "580",
                              .cudnn_version = "9.19",
                              .mpi = "",
                              .gpus = {"NVIDIA H200", "NVIDIA H200"},
                              .sm = 90,
                              .kernel = "6.1.0",
                              .host = "node1",
                              .cpus = 2,
                              .environment = {}};
    fs::permissions(file("bin/graphproof-rank-cuda",
                         "#!/bin/sh\necho '" + record::to_json(stack).dump() + "'\n"),
                    fs::perms::owner_all);
  }
  ~GpusOfOneProcess() override {
    for (const char* variable : {"GRAPHPROOF_FAKE_NVML_MODE", "CUDA_VISIBLE_DEVICES"})
      unsetenv(variable);
    if (nvml_ != nullptr) dlclose(nvml_);
  }
  void* nvml_ = nullptr;
};

TEST_F(GpusOfOneProcess, AreSharedByNoRanksAndNothingIsStartedThere) {
  const std::vector<std::string> shared{"--device", "cuda", "--ranks-per-gpu", "2"};
  for (const std::vector<std::string>& verb :
       std::vector<std::vector<std::string>>{{"plan"}, {"run"}, {"repro", "impl=manual"}}) {
    SCOPED_TRACE(verb[0]);
    std::vector<std::string> arguments = verb;
    arguments.insert(arguments.end(), shared.begin(), shared.end());
    const Printed printed = cli(arguments);
    EXPECT_EQ(printed.exit_code, 2);
    EXPECT_EQ(printed.out, "");
    EXPECT_EQ(printed.err,
              "graphproof: GPU 2 accepts only one process\n"
              "  got   compute mode EXCLUSIVE_PROCESS\n"
              "  want  compute mode DEFAULT\n"
              "  why   a second rank would get no context on it\n"
              "  next  leave --ranks-per-gpu and --cases-per-gpu out, or have the mode changed\n");
    EXPECT_FALSE(fs::exists(top / "runs"));
  }
}

TEST_F(GpusOfOneProcess, HoldARankEachAndMoreOnceTheModeIsTheDefault) {
  const auto plan = [&](const char* ranks) {
    return cli({"plan", "--profile", "smoke", "--device", "cuda", "--ranks-per-gpu", ranks});
  };
  const Printed alone = plan("1");
  EXPECT_EQ(alone.exit_code, 0) << alone.err;
  EXPECT_EQ(alone.out.find("up to 2 ranks"), std::string::npos) << alone.out;
  unsetenv("GRAPHPROOF_FAKE_NVML_MODE");
  const Printed shared = plan("2");
  EXPECT_EQ(shared.exit_code, 0) << shared.err;
  EXPECT_NE(shared.out.find("up to 2 ranks"), std::string::npos) << shared.out;

  const std::string service = "Multi-Process Service does not run here";
  EXPECT_EQ(alone.out.find(service), std::string::npos) << alone.out;
  EXPECT_NE(shared.out.find(service), std::string::npos) << shared.out;
  file("bin/graphproof-judge", "");
  const auto replay_ms = [&](int ranks_per_gpu, std::vector<std::string> gpus = {"0"}) {
    std::ostringstream out;
    const launcher::Device device{
        .name = "cuda", .gpus = std::move(gpus), .sharing = {.ranks_per_gpu = ranks_per_gpu}};
    const Surroundings surroundings{.catalogue = catalogue,
                                    .command_line = {"run"},
                                    .out = out,
                                    .err = out,
                                    .programs = top / "bin",
                                    .runs = top / "runs"};
    return run_setup(device, {}, surroundings).run.options.limits_ms.at(record::Phase::replay);
  };
  EXPECT_EQ(replay_ms(1), catalogue.limits.at(record::Phase::replay));
  EXPECT_EQ(replay_ms(2), 10 * catalogue.limits.at(record::Phase::replay));
  EXPECT_EQ(replay_ms(2, {}), catalogue.limits.at(record::Phase::replay)) << "of a cluster";
  const fs::path control = top / "nvidia-cuda-mps-control";
  fs::copy_file("/bin/sleep", control);
  const pid_t process = fork();
  if (process == 0) {
    execl(control.c_str(), control.c_str(), "60", nullptr);
    _exit(1);
  }
  const auto runs = [&] { return waitpid(process, nullptr, WNOHANG) == 0; };
  while (plan("2").out.find(service) != std::string::npos && runs()) usleep(1000);
  EXPECT_EQ(replay_ms(2), catalogue.limits.at(record::Phase::replay));
  EXPECT_EQ(kill(process, SIGKILL), 0) << "it ended, although a run with the service was planned";
  waitpid(process, nullptr, 0);
}

TEST_F(CliTest, EveryVerbTakesJsonAndHelp) {
  for (const Verb& verb : verbs()) {
    const Printed help = cli({std::string(verb.name), "--help"});
    EXPECT_EQ(help.exit_code, 0) << verb.name;
    // An agent talks only to its launcher, and the tests are run by the script.
    if (verb.name == "agent" || verb.name == "test") continue;
    EXPECT_NE(help.out.find("--json"), std::string::npos) << verb.name;
  }
  EXPECT_EQ(cli({}).exit_code, 0);
}

TEST_F(CliTest, APlanCountsAndListsItsCases) {
  const Printed text = cli({"plan", "--profile", "smoke", "--device", "sim"});
  EXPECT_EQ(text.exit_code, 0) << text.err;
  EXPECT_NE(text.out.find("cases planned"), std::string::npos) << text.out;
  const Printed lines = cli({"plan", "--profile", "smoke", "--device", "sim", "--where",
                             "tp == 2 and impl == manual", "--json"});
  std::istringstream in(lines.out);
  int count = 0;
  for (std::string line; std::getline(in, line); ++count) {
    const auto value = nlohmann::json::parse(line);
    EXPECT_EQ(value.at("axes").at("tp"), 2);
    EXPECT_EQ(value.at("axes").at("impl"), "manual");
  }
  EXPECT_GT(count, 0);
}

TEST_F(CliTest, ACaseIsTheSameByNameAndById) {
  const Printed printed = cli({"case", "impl=manual,tp=2,microbatches=2", "--json"});
  ASSERT_EQ(printed.exit_code, 0) << printed.err;
  const auto value = nlohmann::json::parse(printed.out);
  EXPECT_EQ(value.at("name"), "impl=manual,tp=2,microbatches=2");
  EXPECT_EQ(value.at("ranks"), 2);
  EXPECT_EQ(value.at("id").get<std::string>().size(), 16u);
}

TEST_F(CliTest, ExplainNamesTheRuleThatRefusesACase) {
  const Printed printed = cli({"explain", "impl=full_iteration,nan_check_loss=true"});
  EXPECT_EQ(printed.exit_code, 0) << printed.err;
  EXPECT_NE(printed.out.find("refused by R035"), std::string::npos) << printed.out;
  EXPECT_NE(printed.out.find("verdict: none recorded"), std::string::npos) << printed.out;
}

TEST_F(CliTest, EverythingCanBeListed) {
  for (const char* what : {"axes", "profiles", "rules", "checks", "faults"}) {
    EXPECT_GT(nlohmann::json::parse(cli({"list", what, "--json"}).out).size(), 2u) << what;
    EXPECT_NE(cli({"list", what}).out, "") << what;
  }
  EXPECT_EQ(cli({"list", "runs", "--json"}).out, "[]\n");
}

}  // namespace
}  // namespace graphproof::cli
