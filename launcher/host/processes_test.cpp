#include "launcher/host/processes.h"

#include <gtest/gtest.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "launcher/host/child.h"

namespace graphproof::launcher {
namespace {

TEST(ProcessesTest, AFileThatCannotBeReadEndsTheText) {
  EXPECT_EQ(proc_text("/proc/self/mem"), "")
      << "address 0 is never mapped: read fails after open succeeded";
  EXPECT_EQ(proc_text("/proc/0/environ"), "");
  EXPECT_NE(proc_text("/proc/self/status").find("Pid:\t" + std::to_string(getpid())),
            std::string::npos);
}

/// A process that ends between the open and the read of its environment must not end the launcher
/// with an exception.
TEST(ProcessesTest, ProcessesThatEndWhileTheyAreReadAreLeftOut) {
  std::atomic<bool> reading = true;
  std::thread starter([&] {
    while (reading) Child({{"true"}, own_environment()}, "/dev/null");
  });
  std::size_t found = 0;
  for (int look = 0; look < 200; ++look)
    found += processes_of(-1, "no process carries this mark").size();
  reading = false;
  starter.join();
  EXPECT_EQ(found, 0u);
}

TEST(ProcessesTest, ThisProcessRunsAndAZombieDoesNot) {
  EXPECT_EQ(running_process(getpid())->pid, getpid());
  const pid_t child = fork();
  if (child == 0) _exit(0);
  for (int look = 0; look < 500 && running_process(child); ++look)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_FALSE(running_process(child));
  reap_orphans({});
  EXPECT_EQ(kill(child, 0), -1) << "the zombie was waited for";
}

/// A process with `mark` in its environment. The kernel reports that a program has begun a moment
/// before it has laid out the new memory, and until then the environment reads as empty.
class Sleeper {
 public:
  explicit Sleeper(const std::string& mark)
      : child_({{"sleep", "600"}, {{"PATH", "/usr/bin:/bin"}, {kMarkVariable, mark}}},
               "/dev/null") {
    const std::string environment = "/proc/" + std::to_string(pid()) + "/environ";
    for (int look = 0; look < 500 && proc_text(environment).find(mark) == std::string::npos; ++look)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  int pid() const { return child_.pid(); }

 private:
  Child child_;
};

TEST(ProcessesTest, ProcessesThatShareAProcessorQueueForIt) {
  EXPECT_EQ(queued_ms(0), 0) << "there is no such process";
  if (proc_text("/proc/self/schedstat").empty()) GTEST_SKIP() << "this kernel does not tell";
  cpu_set_t first;
  ASSERT_EQ(sched_getaffinity(0, sizeof first, &first), 0);
  for (int cpu = 0, kept = 0; cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(cpu, &first) && ++kept > 1) CPU_CLR(cpu, &first);
  std::vector<pid_t> busy;
  for (int process = 0; process < 3; ++process) {
    busy.push_back(fork());
    if (busy.back() == 0) {
      sched_setaffinity(0, sizeof first, &first);
      while (getppid() != 0) {
      }
    }
  }
  const auto queued = [&] { return queued_ms(busy[0]) + queued_ms(busy[1]) + queued_ms(busy[2]); };
  for (int look = 0; look < 2000 && queued() < 200; ++look) usleep(10000);
  EXPECT_GE(queued(), 200);
  for (const pid_t process : busy) {
    kill(process, SIGKILL);
    waitpid(process, nullptr, 0);
  }
}

TEST(ProcessesTest, AProcessSeenBeforeABatchBeganDoesNotBelongToIt) {
  const std::string mark = "processes-test-" + std::to_string(getpid());
  const ProcessTable table;
  Sleeper earlier(mark);
  ASSERT_EQ(table.of(0, mark, 0).size(), 1u);
  const std::uint64_t begin = table.looks();
  EXPECT_TRUE(table.of(0, mark, begin).empty()) << "so it is not even looked at";
  Sleeper later(mark);
  for (int look = 0; look < 3; ++look) {
    const std::vector<Process> found = table.of(0, mark, begin);
    ASSERT_EQ(found.size(), 1u);
    EXPECT_EQ(found[0].pid, later.pid());
  }
  EXPECT_EQ(table.of(0, mark, 0).size(), 2u) << "a run that is resumed asks for all";
}

/// The /proc folder of a process that is given this number, as a look sees it; 0 where this test
/// may not choose a number.
ino_t folder_of_a_process(pid_t number) {
  clone_args arguments{};
  arguments.exit_signal = SIGCHLD;
  arguments.set_tid = reinterpret_cast<std::uint64_t>(&number);
  arguments.set_tid_size = 1;
  const auto pid = static_cast<pid_t>(syscall(SYS_clone3, &arguments, sizeof arguments));
  if (pid == 0) {
    pause();
    _exit(0);
  }
  if (pid < 0) return 0;
  Looks looks;
  processes_of(0, "no mark", &looks);
  kill(pid, SIGKILL);
  waitpid(pid, nullptr, 0);
  return looks.first.at(pid).folder;
}

TEST(ProcessesTest, ANumberThatWasGivenOutAgainIsLookedAt) {
  const std::string mark = "processes-test-again-" + std::to_string(getpid());
  Sleeper child(mark);
  Looks looks;
  ASSERT_EQ(processes_of(0, mark, &looks).size(), 1u);
  EXPECT_TRUE(processes_of(0, mark, &looks, 1).empty());
  ++looks.first.at(child.pid())
        .folder;  // as if an earlier look had seen another process of this number
  EXPECT_EQ(processes_of(0, mark, &looks, 1).size(), 1u);
}

TEST(ProcessesTest, ANumberThatWasGivenOutAgainHasAnotherFolder) {
  constexpr pid_t kNumber = 32001;
  const ino_t one = folder_of_a_process(kNumber), other = folder_of_a_process(kNumber);
  if (one == 0 || other == 0)
    GTEST_SKIP() << "this user may not choose a process's number, or it is taken";
  EXPECT_NE(one, other);
}

}  // namespace
}  // namespace graphproof::launcher
