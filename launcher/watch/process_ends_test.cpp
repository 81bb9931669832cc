// Processes that end by a signal, as a launcher of ranks would leave them until it waits for them.
#include "launcher/watch/process_ends.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "launcher/watch/command_processes.h"

namespace graphproof::launcher {
namespace {

/// A child that ends when it is told to.
struct PausedChild {
  PausedChild() : pid(fork()) {
    if (pid == 0)
      for (;;) pause();
  }
  ~PausedChild() {
    kill(pid, SIGKILL);
    waitpid(pid, nullptr, 0);
  }
  /// Sends the signal and returns when the child has ended, which nobody has waited for.
  void end_by(int signal) const {
    kill(pid, signal);
    siginfo_t facts{};
    waitid(P_PID, static_cast<id_t>(pid), &facts, WEXITED | WNOWAIT);
  }
  const pid_t pid;
};

TEST(ProcessEnds, TheSignalOfAProcessIsToldOnce) {
  const PausedChild first, second;
  ProcessEnds ends;
  EXPECT_GE(ends.follow(first.pid, start_ticks(first.pid), "node.1"), 0);
  EXPECT_EQ(ends.follow(first.pid, start_ticks(first.pid), "node.1"), -1) << "followed already";
  EXPECT_GE(ends.follow(second.pid, start_ticks(second.pid), "node.2"), 0);
  EXPECT_TRUE(ends.look().empty());
  first.end_by(SIGKILL);
  const auto ended = ends.look();
  ASSERT_EQ(ended.size(), 1u);
  EXPECT_EQ(ended[0].name, "node.1");
  EXPECT_EQ(ended[0].signal, SIGKILL);
  EXPECT_TRUE(ends.look().empty());
}

TEST(ProcessEnds, AnotherProcessOfTheSameNumberIsNotTakenForIt) {
  const PausedChild child;
  ProcessEnds ends;
  EXPECT_GE(ends.follow(child.pid, start_ticks(child.pid) - 1, "node.1"), 0);
  child.end_by(SIGKILL);
  EXPECT_TRUE(ends.look().empty());
}

TEST(ProcessEnds, WhatItsParentHasWaitedForIsNotKnown) {
  const PausedChild child;
  ProcessEnds ends;
  EXPECT_GE(ends.follow(child.pid, start_ticks(child.pid), "node.1"), 0);
  EXPECT_FALSE(status_of_ended(child.pid, start_ticks(child.pid))) << "it runs";
  child.end_by(SIGKILL);
  waitpid(child.pid, nullptr, 0);
  EXPECT_TRUE(ends.look().empty());
}

TEST(ProcessEnds, AnExitCodeIsNoSignal) {
  int gate[2];
  ASSERT_EQ(pipe(gate), 0);
  const pid_t pid = fork();
  if (pid == 0) {
    char byte;
    _exit(read(gate[0], &byte, 1) == 1 ? 3 : 4);
  }
  ProcessEnds ends;
  const std::int64_t ticks = start_ticks(pid);
  EXPECT_GE(ends.follow(pid, ticks, "node.1"), 0);
  ASSERT_EQ(write(gate[1], "x", 1), 1);
  siginfo_t facts{};
  waitid(P_PID, static_cast<id_t>(pid), &facts, WEXITED | WNOWAIT);
  const auto status = status_of_ended(pid, ticks);
  ASSERT_TRUE(status);
  EXPECT_EQ(WEXITSTATUS(*status), 3);
  EXPECT_TRUE(ends.look().empty());
  waitpid(pid, nullptr, 0);
  close(gate[0]);
  close(gate[1]);
}

}  // namespace
}  // namespace graphproof::launcher
