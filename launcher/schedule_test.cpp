#include "launcher/schedule.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace graphproof::launcher {
namespace {

std::vector<std::string> names(const std::vector<Start>& starts) {
  std::vector<std::string> list;
  for (const Start& start : starts) list.push_back(start.batch);
  return list;
}
using Names = std::vector<std::string>;

TEST(ScheduleTest, TheLongestStartsFirstAndOthersBesideIt) {
  Schedule schedule(4);
  schedule.add({"short", 2, 1});
  schedule.add({"long", 2, 9});
  schedule.add({"middle", 2, 5});
  const auto starts = schedule.start();
  EXPECT_EQ(names(starts), (Names{"long", "middle"}));
  EXPECT_EQ(starts[0].slots, (std::vector<Slot>{0, 1}));
  EXPECT_EQ(starts[1].slots, (std::vector<Slot>{2, 3}));
  EXPECT_EQ(schedule.busy_slots(), 4);
  EXPECT_TRUE(schedule.start().empty());
}

TEST(ScheduleTest, AReleasedLeaseGoesToTheNext) {
  Schedule schedule(2);
  schedule.add({"first", 2, 2});
  schedule.add({"second", 1, 1});
  EXPECT_EQ(names(schedule.start()), Names{"first"});
  schedule.release("first");
  EXPECT_EQ(names(schedule.start()), Names{"second"});
  schedule.release("second");
  EXPECT_TRUE(schedule.idle());
}

TEST(ScheduleTest, EveryStartHoldsItsOwnSlots) {
  Schedule schedule(4);
  schedule.add({"a", 1, 4});
  schedule.add({"b", 1, 3});
  schedule.add({"c", 1, 2});
  schedule.start();
  schedule.release("b");
  schedule.add({"d", 2, 1});
  const auto starts = schedule.start();
  ASSERT_EQ(names(starts), Names{"d"});
  EXPECT_EQ(starts[0].slots, (std::vector<Slot>{1, 3}));
}

TEST(ScheduleTest, AWideBatchIsPassedOverOnlySoOften) {
  Schedule schedule(2);
  schedule.add({"runs", 1, 1000});
  schedule.start();
  schedule.add({"wide", 2, 500});
  for (int i = 0; i < 3 * Schedule::kPassedOver; ++i) schedule.add({"narrow" + std::to_string(i), 1, 1});
  int narrow = 0;
  for (auto starts = schedule.start(); !starts.empty(); starts = schedule.start())
    for (const Start& start : starts) {
      ++narrow;
      schedule.release(start.batch);
    }
  EXPECT_EQ(narrow, Schedule::kPassedOver);
  schedule.release("runs");
  EXPECT_EQ(names(schedule.start()), Names{"wide"});
}

TEST(ScheduleTest, DroppedBatchesNeverStart) {
  Schedule schedule(1);
  schedule.add({"runs", 1, 2});
  schedule.start();
  schedule.add({"waits", 1, 1});
  EXPECT_EQ(schedule.drop_waiting(), Names{"waits"});
  EXPECT_FALSE(schedule.idle());
  schedule.release("runs");
  EXPECT_TRUE(schedule.start().empty());
  EXPECT_TRUE(schedule.idle());
}

TEST(ScheduleTest, AThousandBatchesRunEachOnceWithoutSharingASlot) {
  Schedule schedule(8);
  for (int i = 0; i < 1000; ++i) schedule.add({"b" + std::to_string(i), 1 + i % 8, static_cast<double>(i % 17)});
  std::vector<Start> running;
  int ran = 0;
  while (!schedule.idle()) {
    for (Start& start : schedule.start()) running.push_back(std::move(start));
    std::vector<Slot> used;
    for (const Start& start : running) used.insert(used.end(), start.slots.begin(), start.slots.end());
    std::sort(used.begin(), used.end());
    ASSERT_EQ(std::adjacent_find(used.begin(), used.end()), used.end());
    ASSERT_FALSE(running.empty());
    schedule.release(running.front().batch);
    running.erase(running.begin());
    ++ran;
  }
  EXPECT_EQ(ran, 1000);
}

}  // namespace
}  // namespace graphproof::launcher
