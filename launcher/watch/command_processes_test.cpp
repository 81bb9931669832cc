// Which processes belong to a command, and why one of them has no evidence.
#include "launcher/watch/command_processes.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "reports/record/testing/scratch_folder.h"

namespace graphproof::launcher {
namespace {

Process process(int pid, int parent) { return {.pid = pid, .parent = parent}; }

TEST(Descendants, AreFoundInWhateverOrderProcessesAreListed) {
  // 4 and 5 have moved to sessions of their own, which plays no part.
  const std::vector<Process> all = {process(5, 4), process(4, 3), process(3, 2), process(9, 1),
                                    process(2, 1)};
  std::vector<int> found;
  for (const Process& one : descendants_of(2, all)) found.push_back(one.pid);
  std::ranges::sort(found);
  EXPECT_EQ(found, (std::vector<int>{3, 4, 5}));
}

struct UseRow {
  const char* name;
  CudaUse use;
  const char* why;  // part of it; empty: nothing is missing
};

TEST(UnwatchedProcess, IsNamedWithItsReasonUnlessNothingIsMissing) {
  const std::string probe = "/opt/libgraphproof-probe.so";
  const UseRow rows[] = {
      {"no CUDA", {}, ""},
      {"has loaded the driver and not initialised it",
       {.has_driver = true, .injection = probe},
       ""},
      {"a forked worker of a watched process",
       {.has_driver = true, .has_probe = true, .forked = true, .injection = probe},
       ""},
      {"a forked worker that inherited the device",
       {.has_driver = true, .has_device = true, .forked = true},
       ""},
      {"its probe could not write",
       {.has_driver = true, .has_probe = true, .injection = probe},
       "could not write its file"},
      {"a container hides the probe",
       {.has_driver = true, .injection = probe, .hidden = probe},
       "/opt/libgraphproof-probe.so does not exist where it runs"},
      {"a container hides the folder of the run",
       {.has_driver = true, .has_probe = true, .injection = probe, .hidden = "/runs/1/probe"},
       "/runs/1/probe does not exist where it runs"},
      {"its environment was cleared", {.has_driver = true}, "without CUDA_INJECTION64_PATH"},
      {"a container did not get the environment",
       {.has_driver = true, .other_mounts = true},
       "its environment was not handed on"},
      {"another user's, whom the launcher may not look at",
       {.other_user = 0},
       "it runs as user 0, so whether it uses CUDA cannot be seen"},
      {"another library was injected",
       {.has_driver = true, .injection = "/opt/nsys.so"},
       "CUDA_INJECTION64_PATH=/opt/nsys.so"},
      {"it changed the path itself",
       {.has_driver = true, .has_device = true, .injection = probe},
       "it changed CUDA_INJECTION64_PATH itself"},
  };
  for (const UseRow& row : rows) {
    const auto [why, next] = why_unwatched(row.use, probe, "-e CUDA_INJECTION64_PATH");
    EXPECT_EQ(why.empty(), std::string(row.why).empty()) << row.name << ": " << why;
    EXPECT_EQ(why.empty(), next.empty()) << row.name << ": " << next;
    EXPECT_NE(why.find(row.why), std::string::npos) << row.name << ": " << why;
  }
}

/// A file of this name, mapped by this process for good.
void map_file(const std::filesystem::path& file) {
  std::filesystem::create_directories(file.parent_path());
  std::ofstream(file) << "x";
  const int descriptor = open(file.c_str(), O_RDONLY | O_CLOEXEC);
  ASSERT_NE(mmap(nullptr, 1, PROT_READ, MAP_SHARED, descriptor, 0), MAP_FAILED);
  close(descriptor);
}

TEST(CudaUse, IsSeenByWhatAProcessHasMapped) {
  const record::ScratchFolder folder;
  const std::filesystem::path probes = folder.path() / "probe";
  const auto use = [&] { return cuda_use(getpid(), "/probe.so", probes); };
  EXPECT_FALSE(use().has_driver);
  map_file(folder.path() / "libcuda.so.1");
  EXPECT_TRUE(use().has_driver);
  EXPECT_FALSE(use().has_probe);
  map_file(folder.path() / "libgraphproof-probe.so");
  EXPECT_TRUE(use().has_probe);
  EXPECT_FALSE(use().forked);
  map_file(probes / "node1.4711.probe");
  EXPECT_TRUE(use().forked);
}

TEST(CudaUse, OfAnotherUsersProcessIsNotKnown) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  const pid_t child = fork();
  if (child == 0) {
    const bool another = setresgid(65534, 65534, 65534) == 0 && setresuid(65534, 65534, 65534) == 0;
    const CudaUse use = cuda_use(getppid(), "/probe.so", "/probes");
    const CudaUse own = cuda_use(getpid(), "/probe.so", "/probes");
    _exit(another && use.other_user == 0 && !use.has_driver && !own.other_user ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

TEST(CudaUse, NamesWhatAProcessDoesNotSee) {
  const record::ScratchFolder folder;
  const std::filesystem::path there = folder.path(), absent = folder.path() / "absent";
  EXPECT_EQ(hidden_from(getpid(), {there}), std::nullopt);
  EXPECT_EQ(hidden_from(getpid(), {there, absent}), absent.string());
  EXPECT_EQ(hidden_from(getpid(), {absent / "deeper"}), (absent / "deeper").string());
  EXPECT_EQ(hidden_from(1 << 30, {absent}), std::nullopt) << "there is no such process";
}

TEST(CpuTime, CountsTheThreadsThatAreNotLeftOut) {
  const pid_t child = fork();
  if (child == 0)
    for (volatile bool spins = true; spins;) {
    }
  const auto computed = [child] { return cpu_ms(child, {}) >= 100; };
  for (int look = 0; look < 1000 && !computed(); ++look) usleep(10'000);
  EXPECT_TRUE(computed());
  EXPECT_EQ(cpu_ms(child, {child}), 0) << "its only thread is left out";
  EXPECT_GT(start_ticks(child), 0);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  EXPECT_EQ(start_ticks(child), 0);
}

}  // namespace
}  // namespace graphproof::launcher
