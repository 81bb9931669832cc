#include "launcher/host/ending.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <string>
#include <thread>

#include "launcher/host/child.h"

namespace graphproof::launcher {
namespace {

std::int64_t now_ms() {
  using namespace std::chrono;
  return duration_cast<milliseconds>(steady_clock::now().time_since_epoch()).count();
}

const ProcessTable host;

struct Batch {
  explicit Batch(const std::string& text)
      : mark(mark_of_next()), child(command(text), "/dev/null") {}
  /// A mark of its own for each batch, so that a failed test leaves nothing that the next one
  /// counts.
  static std::string mark_of_next() {
    static int batches = 0;
    return "ending-test-" + std::to_string(getpid()) + "-" + std::to_string(++batches);
  }
  Command command(const std::string& text) const {
    Command command{{"sh", "-c", text}, own_environment()};
    command.environment[kMarkVariable] = mark;
    return command;
  }
  /// Waits until this many processes of the batch run.
  void expect(std::size_t count) const {
    for (int look = 0; look < 500 && processes_of(child.pid(), mark).size() != count; ++look)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    ASSERT_EQ(processes_of(child.pid(), mark).size(), count);
  }
  void run_to_end(Ending& ending) {
    const std::int64_t deadline_ms = now_ms() + 20000;
    while (!ending.step(now_ms()) && now_ms() < deadline_ms) {
      child.poll();
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    child.poll();
  }
  std::string mark;
  Child child;
};

TEST(EndingTest, ProcessesInGroupsAndSessionsOfTheirOwnAreFoundAndEnded) {
  Batch batch("setsid sleep 61 & sleep 62 & wait");
  batch.expect(3);
  Ending ending(host, batch.child.pid(), batch.mark, false, now_ms());
  batch.run_to_end(ending);
  batch.expect(0);
  EXPECT_TRUE(ending.unkillable().empty());
  EXPECT_TRUE(ending.left_behind().empty()) << "the starter did not end by itself";
}

TEST(EndingTest, AProcessThatIgnoresSigtermIsKilled) {
  Batch batch("trap '' TERM; sleep 63 & wait; sleep 64");
  batch.expect(2);
  Ending ending(host, batch.child.pid(), batch.mark, false, now_ms());
  batch.run_to_end(ending);
  batch.expect(0);
  EXPECT_EQ(ending.signal(), SIGKILL);
}

TEST(EndingTest, WhatOutlivesAStarterThatEndedIsNamedAndEnded) {
  Batch batch("setsid sleep 65 & exit 0");
  while (!batch.child.poll()) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  batch.expect(1);
  Ending ending(host, batch.child.pid(), batch.mark, true, now_ms());
  batch.run_to_end(ending);
  ASSERT_EQ(ending.left_behind().size(), 1u);
  EXPECT_EQ(ending.left_behind()[0].command, "sleep");
  batch.expect(0);
}

TEST(EndingTest, NothingLeftNeedsNoSignal) {
  Batch batch("exit 0");
  while (!batch.child.poll()) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  Ending ending(host, batch.child.pid(), batch.mark, true, now_ms());
  EXPECT_TRUE(ending.step(now_ms()));
  EXPECT_EQ(ending.signal(), 0);
}

}  // namespace
}  // namespace graphproof::launcher
