#include "launcher/policy/interrupts.h"

#include <gtest/gtest.h>

namespace graphproof::launcher {
namespace {

TEST(InterruptsTest, TheFirstLetsRunningCasesEndAndEachFurtherOneEndsAllProcesses) {
  using enum InterruptAction;
  Interrupts interrupts;
  EXPECT_EQ(interrupts.next(0), none);
  EXPECT_EQ(interrupts.next(1), finish_running);
  EXPECT_EQ(interrupts.next(1), none) << "it was handled";
  EXPECT_EQ(interrupts.next(2), end_running);
  EXPECT_EQ(interrupts.next(2), none);
  EXPECT_EQ(interrupts.next(3), end_running);
}

TEST(InterruptsTest, TwoWithinOneRoundEndAllProcesses) {
  using enum InterruptAction;
  Interrupts interrupts;
  EXPECT_EQ(interrupts.next(2), end_running);
}

}  // namespace
}  // namespace graphproof::launcher
