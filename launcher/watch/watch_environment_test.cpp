// What a watched command's environment has more than before, and that the user's own settings win.
#include "launcher/watch/watch_environment.h"

#include <gtest/gtest.h>

namespace graphproof::launcher {
namespace {

const WatchSettings kSettings = {.probe = "/opt/gp/libgraphproof-probe.so",
                                 .probe_folder = "/run/probe",
                                 .nccl_folder = "/run/nccl"};

bool has_note(const WatchEnvironment& made, const std::string& part) {
  for (const std::string& note : made.notes)
    if (note.find(part) != std::string::npos) return true;
  return false;
}

TEST(WatchEnvironment, LoadsTheProbeAndLeavesEverythingElse) {
  const WatchEnvironment made = watch_environment({{"PATH", "/bin"}}, kSettings);
  EXPECT_EQ(made.variables,
            (Environment{{"CUDA_INJECTION64_PATH", "/opt/gp/libgraphproof-probe.so"},
                         {"GRAPHPROOF_PROBE_DIR", "/run/probe"},
                         {"GRAPHPROOF_PROBE_PROFILE", "quick"},
                         {"NCCL_DEBUG", "INFO"},
                         {"NCCL_DEBUG_FILE", "/run/nccl/%h.%p.log"},
                         {"NCCL_DEBUG_SUBSYS", "REG"},
                         {"NCCL_PROFILER_PLUGIN", "/opt/gp/libgraphproof-probe.so"}}));
  EXPECT_TRUE(made.notes.empty());
}

TEST(WatchEnvironment, LoadsTheUsersInjectedLibraryAfterwardsAndSaysWhoHasCupti) {
  const WatchEnvironment made =
      watch_environment({{"CUDA_INJECTION64_PATH", "/opt/nsys.so"}}, kSettings);
  EXPECT_EQ(made.variables.at("CUDA_INJECTION64_PATH"), kSettings.probe);
  EXPECT_EQ(made.variables.at("GRAPHPROOF_PROBE_NEXT"), "/opt/nsys.so");
  EXPECT_TRUE(has_note(made, "CUPTI is left to /opt/nsys.so"));
}

TEST(WatchEnvironment, AProbeThatIsSetAlreadyIsNotLoadedTwice) {
  const WatchEnvironment made = watch_environment(
      {{"CUDA_INJECTION64_PATH", "/elsewhere/libgraphproof-probe.so"}}, kSettings);
  EXPECT_FALSE(made.variables.contains("GRAPHPROOF_PROBE_NEXT"));
  EXPECT_EQ(made.variables.at("CUDA_INJECTION64_PATH"), kSettings.probe);
}

TEST(WatchEnvironment, EachNcclSettingOfTheUserKeepsTheLogAsItIs) {
  for (const char* name : {"NCCL_DEBUG", "NCCL_DEBUG_FILE", "NCCL_DEBUG_SUBSYS"}) {
    const WatchEnvironment made = watch_environment({{name, "x"}}, kSettings);
    for (const auto& [variable, value] : made.variables)
      EXPECT_FALSE(variable.starts_with("NCCL_DEBUG")) << name << " and " << variable;
    EXPECT_TRUE(has_note(made, std::string(name) + " is set")) << name;
  }
}

TEST(WatchEnvironment, NcclIsAskedWhereNoOtherJobAnswersUnlessTheUserChoseAPlace) {
  WatchSettings settings = kSettings;
  settings.ras_address = "127.0.0.1:4000";
  EXPECT_EQ(watch_environment({}, settings).variables.at("NCCL_RAS_ADDR"), "127.0.0.1:4000");
  EXPECT_FALSE(watch_environment({{"NCCL_RAS_ADDR", "10.0.0.1:1"}}, settings)
                   .variables.contains("NCCL_RAS_ADDR"));
}

TEST(WatchEnvironment, TheUsersProfilerPluginStays) {
  const WatchEnvironment made = watch_environment({{"NCCL_PROFILER_PLUGIN", "mine"}}, kSettings);
  EXPECT_FALSE(made.variables.contains("NCCL_PROFILER_PLUGIN"));
  EXPECT_TRUE(has_note(made, "NCCL_PROFILER_PLUGIN is set to mine"));
}

TEST(WatchEnvironment, WithoutCuptiTheProbesLeaveItAlone) {
  WatchSettings settings = kSettings;
  settings.cupti = false;
  settings.profile = "full";
  const WatchEnvironment made = watch_environment({}, settings);
  EXPECT_EQ(made.variables.at("GRAPHPROOF_PROBE_CUPTI"), "0");
  EXPECT_EQ(made.variables.at("GRAPHPROOF_PROBE_PROFILE"), "full");
  EXPECT_TRUE(has_note(made, "--no-cupti"));
}

TEST(WatchEnvironment, OpenMpiHandsOursOnUnlessTheUserNamesSome) {
  constexpr const char* kList = "OMPI_MCA_mca_base_env_list";
  WatchSettings settings = kSettings;
  settings.command = {"/usr/bin/mpirun", "-np", "2", "train"};
  const WatchEnvironment made = watch_environment({}, settings);
  EXPECT_EQ(made.variables.at(kList),
            "CUDA_INJECTION64_PATH;GRAPHPROOF_PROBE_DIR;GRAPHPROOF_PROBE_PROFILE;NCCL_DEBUG;"
            "NCCL_DEBUG_FILE;NCCL_DEBUG_SUBSYS;NCCL_PROFILER_PLUGIN");
  EXPECT_TRUE(made.notes.empty());
  EXPECT_FALSE(watch_environment({{kList, "MINE"}}, settings).variables.contains(kList));
  settings.command = {"mpirun", "-x", "MINE", "-np", "2", "train"};
  const WatchEnvironment other = watch_environment({}, settings);
  EXPECT_FALSE(other.variables.contains(kList)) << "Open MPI would refuse to start";
  EXPECT_TRUE(has_note(other, "add -x CUDA_INJECTION64_PATH -x GRAPHPROOF_PROBE_DIR "));
  settings.command = {"torchrun", "-x"};
  EXPECT_FALSE(watch_environment({}, settings).variables.contains(kList));
}

TEST(WatchEnvironment, EachFormIsQuotedForAShell) {
  const Environment variables = {{"A", "it's"}, {"CUDA_INJECTION64_PATH", "/bin x/probe.so"}};
  const std::pair<const char*, const char*> rows[] = {
      {"shell", "export A='it'\\''s'\nexport CUDA_INJECTION64_PATH='/bin x/probe.so'\n"},
      {"env", "env A='it'\\''s' CUDA_INJECTION64_PATH='/bin x/probe.so'\n"},
      {"docker",
       "-e A='it'\\''s' -e CUDA_INJECTION64_PATH='/bin x/probe.so' -v '/bin x:/bin x:ro' -v "
       "'/runs/1:/runs/1'\n"},
      {"apptainer",
       "--env A='it'\\''s' --env CUDA_INJECTION64_PATH='/bin x/probe.so' --bind "
       "'/bin x:/bin x:ro' --bind '/runs/1:/runs/1'\n"}};
  for (const auto& [name, text] : rows) {
    const auto form = environment_form(name);
    ASSERT_TRUE(form) << name;
    EXPECT_EQ(in_form(*form, variables, "/runs/1"), text) << name;
  }
  EXPECT_FALSE(environment_form("fish"));
  EXPECT_EQ(container_options(variables, "/runs/1"),
            "-e A -e CUDA_INJECTION64_PATH -v '/bin x:/bin x:ro' -v '/runs/1:/runs/1'");
}

}  // namespace
}  // namespace graphproof::launcher
