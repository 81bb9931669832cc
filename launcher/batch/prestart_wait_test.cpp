#include "launcher/batch/prestart_wait.h"

#include <gtest/gtest.h>

namespace graphproof::launcher {
namespace {

using WaitStep = PrestartWait::Step;
constexpr std::int64_t kLimit_ms = 1000;
constexpr PrestartWait::Ranks kStarting, kReady{.ready = true}, kEnded{.ended = true};

TEST(PrestartWaitTest, RanksGetTheDeviceThenBecomeReadyThenBegin) {
  PrestartWait wait(true);
  EXPECT_EQ(wait.step(kStarting, kLimit_ms, 10), WaitStep::none);
  wait.allow_device();
  EXPECT_EQ(wait.step(kStarting, kLimit_ms, 20), WaitStep::allow_device);
  EXPECT_EQ(wait.step(kStarting, kLimit_ms, 30), WaitStep::none) << "they know it already";
  EXPECT_EQ(wait.step(kReady, kLimit_ms, 40), WaitStep::none) << "it is not their turn";
  wait.begin();
  EXPECT_EQ(wait.step(kReady, kLimit_ms, 50), WaitStep::begin);
  EXPECT_FALSE(wait.waits());
  EXPECT_FALSE(wait.failed());
}

TEST(PrestartWaitTest, ATurnThatComesEarlyAllowsTheDeviceAndWaitsForReadyRanks) {
  PrestartWait wait(true);
  wait.begin();
  EXPECT_TRUE(wait.device_allowed());
  EXPECT_EQ(wait.step(kStarting, kLimit_ms, 10), WaitStep::allow_device);
  EXPECT_EQ(wait.step(kStarting, kLimit_ms, 20), WaitStep::none);
  EXPECT_EQ(wait.step(kReady, kLimit_ms, 30), WaitStep::begin);
}

TEST(PrestartWaitTest, RanksThatEndHaveFailedAndNeverBegin) {
  PrestartWait wait(true);
  EXPECT_EQ(wait.step(kEnded, kLimit_ms, 10), WaitStep::none);
  EXPECT_TRUE(wait.failed());
  wait.begin();
  EXPECT_EQ(wait.step(kReady, kLimit_ms, 20), WaitStep::allow_device);
  EXPECT_EQ(wait.step(kReady, kLimit_ms, 30), WaitStep::none);
  EXPECT_TRUE(wait.waits());
}

TEST(PrestartWaitTest, TheLimitCountsFromWhenTheDeviceIsAllowed) {
  PrestartWait wait(true);
  EXPECT_EQ(wait.step(kStarting, kLimit_ms, 100'000), WaitStep::none);
  EXPECT_FALSE(wait.failed()) << "without the device they cannot get ready";
  wait.allow_device();
  wait.step(kStarting, kLimit_ms, 100'000);
  wait.step(kStarting, kLimit_ms, 101'000);
  EXPECT_FALSE(wait.failed());
  wait.step(kStarting, kLimit_ms, 101'001);
  EXPECT_TRUE(wait.failed());
}

TEST(PrestartWaitTest, RanksThatMayBeginAtOnceDoNotWait) {
  EXPECT_FALSE(PrestartWait(false).waits());
}

}  // namespace
}  // namespace graphproof::launcher
