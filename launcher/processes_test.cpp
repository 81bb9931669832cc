#include "launcher/processes.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <string>
#include <thread>

#include "launcher/child.h"

namespace graphproof::launcher {
namespace {

TEST(ProcessesTest, AFileThatCannotBeReadEndsTheText) {
  EXPECT_EQ(proc_text("/proc/self/mem"), "") << "address 0 is never mapped: read fails after open succeeded";
  EXPECT_EQ(proc_text("/proc/0/environ"), "");
  EXPECT_NE(proc_text("/proc/self/status").find("Pid:\t" + std::to_string(getpid())), std::string::npos);
}

/// A process that ends between the open and the read of its environment once ended the launcher with an exception.
TEST(ProcessesTest, ProcessesThatEndWhileTheyAreReadAreLeftOut) {
  std::atomic<bool> reading = true;
  std::thread starter([&] {
    while (reading) Child({{"true"}, own_environment()}, "/dev/null");
  });
  std::size_t found = 0;
  for (int look = 0; look < 200; ++look) found += processes_of(-1, "nobody carries this mark").size();
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

TEST(ProcessesTest, WhatWasAKernelThreadIsLookedAtAgainAfterASecond) {
  Child child({{"sleep", "600"}, own_environment()}, "/dev/null");
  const auto now = std::chrono::steady_clock::now();
  KernelThreads known{{child.pid()}, now};
  EXPECT_TRUE(processes_of(child.pid(), "no mark", &known).empty()) << "its number is not given out again so soon";
  known.since = now - std::chrono::seconds(2);
  EXPECT_EQ(processes_of(child.pid(), "no mark", &known).size(), 1u);
  EXPECT_FALSE(known.pids.contains(child.pid()));
  // In a process namespace of its own no kernel thread can be seen.
  for (const int pid : known.pids) EXPECT_TRUE(proc_text("/proc/" + std::to_string(pid) + "/environ").empty()) << pid;
}

}  // namespace
}  // namespace graphproof::launcher
