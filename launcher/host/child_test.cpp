#include "launcher/host/child.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include <chrono>
#include <system_error>
#include <thread>

#include "launcher/host/memory_file.h"
#include "launcher/host/processes.h"

namespace graphproof::launcher {
namespace {

Command shell(const std::string& text) { return {{"sh", "-c", text}, own_environment()}; }

TEST(ChildTest, OutputAndExitCodeComeBack) {
  const Output output = run_to_end(shell("echo out; echo error >&2; exit 3"), 10000);
  EXPECT_FALSE(output.timed_out);
  EXPECT_EQ(output.exit, (Exit{false, 3}));
  EXPECT_EQ(output.out, "out\n");
  EXPECT_EQ(output.error, "error\n");
}

TEST(ChildTest, WhatAChildPrintsIsKeptInMemoryUpToABound) {
  const MemoryFile printed;
  Child child(shell("printf 0123456789; printf ab >&2"), printed.descriptor(),
              printed.descriptor());
  for (int look = 0; look < 5000 && !child.poll(); ++look)
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  ASSERT_TRUE(child.poll());
  EXPECT_EQ(printed.first(100), "0123456789ab");
  EXPECT_EQ(printed.first(4), "0123");
}

TEST(ChildTest, ASignalIsDistinguishedFromAnExitCode) {
  EXPECT_EQ(run_to_end(shell("kill -SEGV $$"), 10000).exit, (Exit{true, SIGSEGV}));
}

TEST(ChildTest, TheDeadlineHolds) {
  const auto begin = std::chrono::steady_clock::now();
  const Output output = run_to_end(shell("sleep 60"), 50);
  EXPECT_TRUE(output.timed_out);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20));
}

TEST(ChildTest, AMissingProgramIsNamed) {
  try {
    run_to_end({{"no-such-program"}, own_environment()}, 1000);
    FAIL() << "started";
  } catch (const std::system_error& error) {
    EXPECT_STREQ(error.what(),
                 "can't start 'no-such-program': not found in PATH or not executable: No such file "
                 "or directory");
  }
}

TEST(ChildTest, TheChildLeadsASessionOfItsOwn) {
  Child child(shell("sleep 60"), "/dev/null");
  const auto process = running_process(child.pid());
  ASSERT_TRUE(process);
  EXPECT_EQ(process->session, child.pid());
  EXPECT_EQ(process->parent, getpid());
}

TEST(ChildTest, ADroppedChildIsGone) {
  int pid = 0;
  {
    Child child(shell("exec sleep 60"), "/dev/null");
    pid = child.pid();
  }
  EXPECT_FALSE(running_process(pid));
}

TEST(ChildTest, TheChildEndsWithItsParent) {
  // A shell starts a fork of this test program, which starts a child and is killed without a chance
  // to clean up.
  int pids[2];
  ASSERT_EQ(pipe(pids), 0);
  const int parent = fork();
  if (parent == 0) {
    const Child child(shell("exec sleep 60"), "/dev/null");
    const int pid = child.pid();
    [[maybe_unused]] const auto written = write(pids[1], &pid, sizeof pid);
    for (;;) pause();
  }
  int pid = 0;
  ASSERT_EQ(read(pids[0], &pid, sizeof pid), static_cast<ssize_t>(sizeof pid));
  ASSERT_TRUE(running_process(pid));
  kill(parent, SIGKILL);
  for (int look = 0; look < 500 && running_process(pid); ++look)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_FALSE(running_process(pid));
  close(pids[0]);
  close(pids[1]);
}

}  // namespace
}  // namespace graphproof::launcher
