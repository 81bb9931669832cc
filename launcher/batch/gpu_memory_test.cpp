#include "launcher/batch/gpu_memory.h"

#include <gtest/gtest.h>

namespace graphproof::launcher {
namespace {

using MemoryStep = GpuMemoryWait::Step;
using Successor = GpuMemoryWait::Successor;
constexpr std::int64_t kSettle_ms = GpuMemoryWait::kSettle_ms;

TEST(GpuMemoryWaitTest, MemoryThatIsBackIsNotWaitedFor) {
  GpuMemoryWait wait;
  wait.start(1000);
  EXPECT_EQ(wait.step(true, std::nullopt, 1000), MemoryStep::settled);
}

TEST(GpuMemoryWaitTest, MemoryThatStaysIsWaitedForAMomentOnly) {
  GpuMemoryWait wait;
  wait.start(1000);
  EXPECT_EQ(wait.step(false, std::nullopt, 1000 + kSettle_ms), MemoryStep::wait);
  EXPECT_EQ(wait.step(false, std::nullopt, 1001 + kSettle_ms), MemoryStep::settled);
}

TEST(GpuMemoryWaitTest, ASuccessorWithoutTheDeviceHasNoMemoryThere) {
  GpuMemoryWait wait;
  wait.start(0);
  EXPECT_EQ(wait.step(false, Successor{}, kSettle_ms + 1), MemoryStep::settled);
  EXPECT_FALSE(wait.successor_ended());
}

TEST(GpuMemoryWaitTest, MemoryThatStaysNextToASuccessorIsAskedForAgainWithoutIt) {
  GpuMemoryWait wait;
  wait.start(0);
  const Successor runs{.uses_device = true}, over{.uses_device = true, .over = true};
  EXPECT_EQ(wait.step(false, runs, kSettle_ms), MemoryStep::wait);
  EXPECT_EQ(wait.step(false, runs, kSettle_ms + 1), MemoryStep::end_successor);
  EXPECT_TRUE(wait.successor_ended());
  EXPECT_EQ(wait.step(false, runs, 10 * kSettle_ms), MemoryStep::wait) << "it still ends";
  EXPECT_EQ(wait.step(false, over, 11 * kSettle_ms), MemoryStep::wait) << "from its end on";
  EXPECT_EQ(wait.step(false, over, 11 * kSettle_ms + 1), MemoryStep::settled);
}

TEST(GpuMemoryWaitTest, ASuccessorThatIsForgottenAfterItsEndIsNotEndedAgain) {
  GpuMemoryWait wait;
  wait.start(0);
  ASSERT_EQ(wait.step(false, Successor{.uses_device = true}, kSettle_ms + 1),
            MemoryStep::end_successor);
  EXPECT_EQ(wait.step(false, std::nullopt, 2 * kSettle_ms + 1), MemoryStep::wait);
  EXPECT_EQ(wait.step(false, std::nullopt, 2 * kSettle_ms + 2), MemoryStep::settled);
}

TEST(GpuMemoryTest, WithoutTheDriversLibraryNothingIsMeasured) {
  const GpuMemory memory(nullptr, {"0"}, {});
  EXPECT_TRUE(memory.before().empty());
  EXPECT_TRUE(memory.is_back({}));
  EXPECT_FALSE(memory.lists({1}));
  EXPECT_EQ(memory.left_in_use({}), std::nullopt);
}

}  // namespace
}  // namespace graphproof::launcher
