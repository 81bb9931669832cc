#include "launcher/policy/schedule.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include "launcher/testing/simulated_run.h"

namespace graphproof::launcher {
namespace {

std::vector<std::string> names(const std::vector<Start>& starts) {
  std::vector<std::string> list;
  for (const Start& start : starts) list.push_back(start.batch);
  return list;
}
using Names = std::vector<std::string>;

/// `islands` islands of `size` slots, two on a node.
std::vector<Place> islands(int count, int size) {
  std::vector<Place> places;
  for (int island = 0; island < count; ++island)
    for (int i = 0; i < size; ++i) places.push_back({island, island / 2});
  return places;
}

TEST(ScheduleTest, TheLongestStartsFirstAndOthersAtTheSameTime) {
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

/// The GPUs of every batch that starts, as numbers from 0.
std::map<std::string, std::set<Slot>> gpus(const Schedule& schedule,
                                           const std::vector<Start>& starts) {
  std::map<std::string, std::set<Slot>> of;
  for (const Start& start : starts)
    for (const Slot slot : start.slots) of[start.batch].insert(schedule.gpu_of(slot));
  return of;
}

TEST(ScheduleTest, SharedGpusTakeSeveralBatchesButOneRankOfEach) {
  Schedule schedule = Schedule::of_shared_gpus({{0, 0}, {0, 0}}, 3);
  EXPECT_EQ(schedule.slot_count(), 6);
  for (int i = 0; i < 2; ++i) schedule.add({"two" + std::to_string(i), 2, 10});
  for (int i = 0; i < 3; ++i) schedule.add({"one" + std::to_string(i), 1, 10});
  const auto starts = schedule.start(0);
  EXPECT_EQ(names(starts), (Names{"two0", "two1", "one0", "one1"}));
  const auto of = gpus(schedule, starts);
  EXPECT_EQ(of.at("two0"), (std::set<Slot>{0, 1}));
  EXPECT_EQ(of.at("two1"), (std::set<Slot>{0, 1}));
  EXPECT_NE(of.at("one0"), of.at("one1"));
  schedule.release("two1");
  schedule.release("one1");
  schedule.add({"two2", 2, 10});
  EXPECT_EQ(gpus(schedule, schedule.start(1)).at("two2"), (std::set<Slot>{0, 1}));
}

TEST(ScheduleTest, OnSharedGpusOnlyABatchOfMoreRanksThanGpusHasTwoSlotsOfOne) {
  Schedule schedule = Schedule::of_shared_gpus({{0, 0}, {0, 0}}, 3);
  schedule.add({"four", 4, 10});
  schedule.add({"two", 2, 10});
  EXPECT_EQ(names(schedule.start(0)), (Names{"four", "two"}));
  schedule.release("four");
  schedule.release("two");
  schedule.withdraw({1});
  schedule.add({"again", 2, 10});
  EXPECT_EQ(schedule.drop_unfit(), Names{"again"}) << "one GPU is left";
  schedule.add({"three", 3, 10});
  EXPECT_EQ(names(schedule.start(1)), Names{"three"});
}

TEST(ScheduleTest, SharedGpusAreEmptyForABatchThatMeasuresTime) {
  Schedule schedule = Schedule::of_shared_gpus({{0, 0}}, 4);
  schedule.add({"times", 1, 10, true});
  schedule.add({"other", 1, 10});
  EXPECT_EQ(names(schedule.start(0)), Names{"times"});
  schedule.release("times");
  EXPECT_EQ(names(schedule.start(1)), Names{"other"});
}

TEST(ScheduleTest, TroubleOfASharedGpuCountsOnceForThoseWhoMeetItTogetherAndTakesAllItsSlots) {
  Schedule schedule = Schedule::of_shared_gpus({{0, 0}, {0, 0}}, 2);
  for (const char* batch : {"a", "b", "c", "d"}) schedule.add({batch, 1, 10});
  const auto of = gpus(schedule, schedule.start(0));
  std::vector<std::string> on_first;
  for (const auto& [batch, places] : of)
    if (places.contains(0)) on_first.push_back(batch);
  ASSERT_EQ(on_first.size(), 2U);
  EXPECT_TRUE(schedule.strike(on_first[0]).empty());
  EXPECT_TRUE(schedule.strike(on_first[1]).empty()) << "the same trouble, met by two";
  for (const std::string& batch : on_first) schedule.release(batch);

  Queued again{"again", 1, 10};
  again.avoided = {0};
  schedule.add(again);
  EXPECT_TRUE(schedule.start(1).empty()) << "the other GPU is full, and both slots are avoided";
  schedule.drop("again");

  schedule.add({"later", 1, 10});
  schedule.start(2);
  EXPECT_EQ(schedule.strike("later"), (std::vector<Slot>{0, 2}));
  EXPECT_EQ(schedule.withdrawn(), (std::vector<Slot>{0, 2}));
}

TEST(ScheduleTest, TheWidestStartsFirstAndNarrowOnesFillWhatItLeaves) {
  Schedule schedule(islands(2, 8));
  for (int i = 0; i < 20; ++i) {
    schedule.add({"five" + std::to_string(i), 5, 10});
    schedule.add({"two" + std::to_string(i), 2, 15});
    schedule.add({"one" + std::to_string(i), 1, 12});
  }
  schedule.add({"eight", 8, 5});
  EXPECT_EQ(names(schedule.start(0)), (Names{"eight", "five0", "two0", "one0"}));
}

TEST(ScheduleTest, WhatCouldBeTheLastToEndStartsFirst) {
  Schedule schedule(2);
  for (int i = 0; i < 5; ++i) schedule.add({"wide" + std::to_string(i), 2, 10});
  schedule.add(
      {"long", 1,
       50});  // all takes (5 * 2 * 10 + 50 + 20) / 2 = 85 s at least, and this one perhaps 100
  schedule.add({"short", 1, 20});
  EXPECT_EQ(names(schedule.start(0)), (Names{"long", "short"}));
}

TEST(ScheduleTest, AThousandCasesTakeAtMostFivePercentLongerThanTheyMust) {
  for (const WorldSizes& sizes : kWorldSizes)
    for (const Expectations* expectations : {&kExpectations[0], &kExpectations[1]})
      for (const int gpus : {8, 64}) {
        const auto cases = simulated_cases(sizes, *expectations, gpus, 7);
        EXPECT_LE(makespan_s(cases, gpus) / lower_bound_s(cases, gpus), 1.05)
            << sizes.name << ", " << expectations->name << ", " << gpus << " GPUs";
      }
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

/// Starts and ends narrow batches of one second until none starts any more. Returns how many ran.
int narrow_batches(Schedule& schedule, std::int64_t& now_ms) {
  int narrow = 0;
  for (auto starts = schedule.start(now_ms); !starts.empty(); starts = schedule.start(now_ms))
    for (const Start& start : starts) {
      ++narrow;
      now_ms += 1000;
      schedule.release(start.batch);
    }
  return narrow;
}

TEST(ScheduleTest, AWideBatchIsPassedOverWhileThatDelaysItNot) {
  Schedule schedule(2);
  schedule.add({"runs", 1, 20});
  schedule.start(0);
  schedule.add({"wide", 2, 500});
  for (int i = 0; i < 100; ++i) schedule.add({"narrow" + std::to_string(i), 1, 1});
  std::int64_t now_ms = 0;
  EXPECT_EQ(narrow_batches(schedule, now_ms), 20)
      << "the wide one is due when `runs` is expected to end";
  schedule.release("runs");
  EXPECT_EQ(names(schedule.start(now_ms)), Names{"wide"});
}

TEST(ScheduleTest, AWideBatchWaitsNotForEverForExpectationsThatWereWrong) {
  Schedule schedule(2);
  schedule.add({"runs", 1, 1e9});
  schedule.start(0);
  schedule.add({"wide", 2, 500});
  for (int i = 0; i < 3 * Schedule::kPassedOverAtAll; ++i)
    schedule.add({"narrow" + std::to_string(i), 1, 1});
  std::int64_t now_ms = 0;
  EXPECT_EQ(narrow_batches(schedule, now_ms), Schedule::kPassedOverAtAll);
}

TEST(ScheduleTest, ALongBatchMayStartPastAReservationThatLeavesItsSlotsAlone) {
  Schedule schedule(4);
  schedule.add({"runs", 2, 10});
  schedule.start(0);
  schedule.add({"wide", 3, 500});
  for (int i = 0; i < Schedule::kPassedOver; ++i) {
    const std::string name = "narrow" + std::to_string(i);
    schedule.add({name, 1, 1});
    EXPECT_EQ(names(schedule.start(0)), Names{name});
    schedule.release(name);
  }
  schedule.add({"long", 1, 100});
  schedule.add({"also long", 1, 99});
  EXPECT_EQ(names(schedule.start(0)), Names{"long"})
      << "of the two free slots one is the wide batch's";
  schedule.release("runs");
  EXPECT_EQ(names(schedule.start(10000)), Names{"wide"});
}

TEST(ScheduleTest, WhatMeasuresTimeRunsAlone) {
  Schedule schedule(4);
  schedule.add({"long", 1, 100});
  schedule.add({"timed", 1, 5, true});
  EXPECT_EQ(names(schedule.start(0)), Names{"timed"}) << "first, while nothing has to end for it";
  EXPECT_TRUE(schedule.start(0).empty());
  schedule.release("timed");
  EXPECT_EQ(names(schedule.start(0)), Names{"long"});
  schedule.add({"timed again", 1, 5, true});
  EXPECT_TRUE(schedule.start(0).empty());
  schedule.release("long");
  EXPECT_EQ(names(schedule.start(0)), Names{"timed again"});
}

TEST(ScheduleTest, ABatchStaysWithinAnIslandWhereOneIsLargeEnough) {
  Schedule schedule(islands(2, 4));
  schedule.add({"a", 3, 9});
  schedule.add({"b", 3, 8});
  schedule.add({"c", 2, 7});
  schedule.add({"d", 1, 6});
  const auto starts = schedule.start(0);
  ASSERT_EQ(names(starts), (Names{"a", "b", "d"})) << "c would lie across two islands";
  EXPECT_EQ(starts[0].slots, (std::vector<Slot>{0, 1, 2}));
  EXPECT_EQ(starts[1].slots, (std::vector<Slot>{4, 5, 6}));
  EXPECT_EQ(starts[2].slots, (std::vector<Slot>{3}));
}

TEST(ScheduleTest, ASmallBatchTakesTheTightestGap) {
  Schedule schedule(islands(2, 4));
  schedule.add({"three", 3, 9});
  schedule.start(0);
  schedule.add({"one", 1, 1});
  EXPECT_EQ(schedule.start(0).at(0).slots, (std::vector<Slot>{3}))
      << "the other island stays whole";
  schedule.add({"four", 4, 1});
  EXPECT_EQ(schedule.start(0).at(0).slots, (std::vector<Slot>{4, 5, 6, 7}));
}

TEST(ScheduleTest, AWideBatchTakesWholeIslandsOfOneNode) {
  Schedule schedule(islands(4, 4));
  schedule.add({"one", 1, 9});
  schedule.start(0);
  schedule.add({"eight", 8, 1});
  EXPECT_EQ(schedule.start(0).at(0).slots, (std::vector<Slot>{8, 9, 10, 11, 12, 13, 14, 15}))
      << "node 1 is whole";
}

TEST(ScheduleTest, WhereBatchesLieOnOneNodeTheFullestThatFitsIsFilled) {
  Schedule schedule(8, 4);
  schedule.add({"three", 3, 9});
  schedule.add({"four", 4, 8});
  schedule.add({"one", 1, 7});
  const auto starts = schedule.start(0);
  ASSERT_EQ(names(starts), (Names{"three", "four", "one"}));
  EXPECT_EQ(starts[2].slots, (std::vector<Slot>{3}));
  schedule.release("three");
  schedule.release("four");
  schedule.add({"needs a node", 4, 5});
  EXPECT_EQ(schedule.start(0).at(0).slots, (std::vector<Slot>{4, 5, 6, 7}))
      << "four free slots of two nodes are no node";
}

TEST(ScheduleTest, WhatNoNodeCanHoldAnyMoreIsDropped) {
  Schedule schedule(4, 2);
  schedule.add({"a", 1, 9});
  schedule.add({"b", 2, 8});
  schedule.start(0);
  schedule.add({"two", 2, 1});
  schedule.withdraw(schedule.slots_of("a"));
  schedule.release("a");
  EXPECT_TRUE(schedule.drop_unfit().empty()) << "the other node still can";
  schedule.withdraw(schedule.slots_of("b"));
  schedule.release("b");
  EXPECT_EQ(schedule.drop_unfit(), Names{"two"});
}

TEST(ScheduleTest, ARetryGoesElsewhereWhereThereIsElsewhere) {
  Schedule schedule(4);
  schedule.add({"again", 2, 1, false, {0, 1}});
  EXPECT_EQ(schedule.start(0).at(0).slots, (std::vector<Slot>{2, 3}));
  schedule.release("again");
  schedule.add({"everywhere", 3, 1, false, {0, 1}});
  EXPECT_EQ(schedule.start(0).at(0).slots, (std::vector<Slot>{0, 1, 2}))
      << "three slots without those two do not exist";
}

TEST(ScheduleTest, ASlotThatIsStruckTwiceIsNotLeasedAgain) {
  Schedule schedule(2);
  for (int strike = 1; strike <= 2; ++strike) {
    const std::string name = "b" + std::to_string(strike);
    schedule.add({name, 1, 1, false, {1}});
    ASSERT_EQ(schedule.start(0).at(0).slots, (std::vector<Slot>{0}));
    EXPECT_EQ(schedule.strike(name), strike == 2 ? std::vector<Slot>{0} : std::vector<Slot>{});
    schedule.release(name);
  }
  EXPECT_EQ(schedule.withdrawn(), (std::vector<Slot>{0}));
  schedule.add({"wide", 2, 1});
  EXPECT_EQ(schedule.drop_unfit(), Names{"wide"});
}

TEST(ScheduleTest, ABatchWhosePrestartSlotsAreLostIsNoLongerPrestarted) {
  Schedule schedule(2);
  for (const char* name : {"runs", "next"}) schedule.add({name, 1, 5, false, {}, "key"});
  schedule.add({"elsewhere", 1, 9});
  EXPECT_EQ(names(schedule.start(0)), (Names{"elsewhere", "runs"}));
  EXPECT_EQ(names(schedule.prestart()), Names{"next"});
  EXPECT_TRUE(schedule.prestarted("next"));
  EXPECT_TRUE(schedule.fits_elsewhere(1, schedule.slots_of("runs")));
  EXPECT_FALSE(schedule.fits_elsewhere(2, schedule.slots_of("runs")));
  schedule.withdraw(schedule.slots_of("runs"));
  schedule.release("runs");
  EXPECT_FALSE(schedule.prestarted("next"));
  EXPECT_FALSE(schedule.fits_elsewhere(1, schedule.slots_of("elsewhere")))
      << "the other one is lost";
}

TEST(ScheduleTest, SlotsOfALostNodeAreWithdrawnWhenTheirBatchHasEnded) {
  Schedule schedule(islands(2, 2));
  schedule.add({"runs", 2, 1});
  const auto slots = schedule.start(0).at(0).slots;
  schedule.withdraw(slots);
  schedule.release("runs");
  EXPECT_EQ(schedule.withdrawn(), slots);
}

TEST(ScheduleTest, TheNextOfTheSameKeyIsPrestartedOnTheSlotsOfTheOneBefore) {
  Schedule schedule(2);
  for (const char* name : {"first", "second", "third"})
    schedule.add({name, 2, 5, false, {}, "key"});
  schedule.add({"longer, of another environment", 2, 4, false, {}, "other"});
  EXPECT_EQ(names(schedule.start(0)), Names{"first"});
  const auto prestarts = schedule.prestart();
  ASSERT_EQ(names(prestarts), Names{"second"});
  EXPECT_EQ(prestarts[0].slots, (std::vector<Slot>{0, 1}));
  EXPECT_TRUE(schedule.prestart().empty()) << "one for each running batch";
  EXPECT_TRUE(schedule.start(0).empty());
  schedule.release("first");
  EXPECT_EQ(names(schedule.start(0)), Names{"second"});
}

TEST(ScheduleTest, ABatchPrestartedOnSlotsThatAreLostWaitsLikeAnyOther) {
  Schedule schedule(2);
  schedule.add({"first", 1, 9, false, {}, "key"});
  schedule.add({"second", 1, 8});
  schedule.add({"third", 1, 7, false, {}, "key"});
  schedule.start(0);
  EXPECT_EQ(names(schedule.prestart()), Names{"third"});
  schedule.withdraw(schedule.slots_of("first"));
  schedule.release("first");
  EXPECT_TRUE(schedule.start(0).empty());
  schedule.release("second");
  EXPECT_EQ(names(schedule.start(0)), Names{"third"});
}

TEST(ScheduleTest, APrestartedBatchMayBeTakenOutAndAnotherTakesItsPlace) {
  Schedule schedule(1);
  for (const char* name : {"first", "second", "third"})
    schedule.add({name, 1, 5, false, {}, "key"});
  schedule.start(0);
  EXPECT_EQ(names(schedule.prestart()), Names{"second"});
  schedule.drop("second");
  EXPECT_EQ(names(schedule.prestart()), Names{"third"});
  schedule.release("first");
  EXPECT_EQ(names(schedule.start(0)), Names{"third"});
}

TEST(ScheduleTest, SlotsThatStayFreeTakeABatchThatWasPrestartedOnOthers) {
  Schedule schedule(2);
  schedule.add({"long", 1, 90, false, {}, "key"});
  schedule.add({"short", 1, 8});
  schedule.add({"next", 1, 7, false, {}, "key"});
  schedule.start(0);
  EXPECT_EQ(names(schedule.prestart()), Names{"next"});
  schedule.release("short");
  EXPECT_TRUE(schedule.start(5000).empty());
  EXPECT_TRUE(schedule.start(5000 + Schedule::kIdle_ms - 1).empty())
      << "its own slots may be free at any moment";
  EXPECT_TRUE(schedule.prestarted("next"));
  EXPECT_TRUE(schedule.start(5000 + Schedule::kIdle_ms).empty())
      << "its processes are to be ended first";
  EXPECT_FALSE(schedule.prestarted("next"));
  EXPECT_TRUE(schedule.prestart().empty());
  const auto starts = schedule.start(5000 + Schedule::kIdle_ms + 1);
  ASSERT_EQ(names(starts), Names{"next"});
  EXPECT_EQ(starts[0].slots, std::vector<Slot>{1});
}

TEST(ScheduleTest, SlotsThatAreFreeForAMomentOnlyMoveNothing) {
  Schedule schedule(2);
  schedule.add({"long", 1, 90, false, {}, "key"});
  schedule.add({"short", 1, 8});
  schedule.add({"next", 1, 7, false, {}, "key"});
  schedule.start(0);
  schedule.prestart();
  schedule.release("short");
  schedule.start(5000);
  schedule.add({"another", 1, 3});
  EXPECT_EQ(names(schedule.start(5500)), Names{"another"});
  schedule.release("another");
  EXPECT_TRUE(schedule.start(6500).empty()) << "counted anew";
  EXPECT_TRUE(schedule.prestarted("next"));
}

TEST(ScheduleTest, NothingIsPrestartedWhileABatchMeasuresTime) {
  Schedule schedule(2);
  schedule.add({"timed", 1, 9, true, {}, "key"});
  schedule.add({"next", 1, 8, false, {}, "key"});
  EXPECT_EQ(names(schedule.start(0)), Names{"timed"});
  EXPECT_TRUE(schedule.prestart().empty());
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

/// Runs everything in `schedule` to its end, each batch for as long as it takes, and checks every
/// lease.
void run_all(Schedule& schedule, const std::map<std::string, Queued>& queued,
             const std::vector<Place>& places,
             const std::function<std::int64_t(const Queued&)>& takes_ms) {
  std::multimap<std::int64_t, Start> running;
  std::set<std::string> ran;
  std::int64_t now_ms = 0;
  while (!schedule.idle()) {
    for (Start& start : schedule.start(now_ms)) {
      const Queued& one = queued.at(start.batch);
      RC_ASSERT(ran.insert(start.batch).second);
      RC_ASSERT(static_cast<int>(start.slots.size()) == one.slots);
      std::set<int> islands;
      for (const Slot slot : start.slots)
        islands.insert(places.at(static_cast<std::size_t>(slot)).island);
      RC_ASSERT(one.slots > 4 || islands.size() == 1u);
      running.emplace(now_ms + takes_ms(one), std::move(start));
    }
    RC_ASSERT(!running.empty());
    std::set<Slot> used;
    bool alone = false;
    std::size_t leased = 0;
    for (const auto& [end, start] : running) {
      used.insert(start.slots.begin(), start.slots.end());
      leased += start.slots.size();
      alone = alone || queued.at(start.batch).exclusive;
    }
    RC_ASSERT(used.size() == leased);
    RC_ASSERT(!alone || running.size() == 1u);
    for (const Start& start : schedule.prestart())
      RC_ASSERT(queued.at(start.batch).prestart_key == "key");
    now_ms = running.begin()->first;
    schedule.release(running.begin()->second.batch);
    running.erase(running.begin());
  }
  RC_ASSERT(ran.size() == queued.size());
}

TEST(ScheduleTest, WhateverIsPlannedEachRunsOnceOnSlotsOfItsOwnWithinItsIslandAndTimedOnesAlone) {
  EXPECT_TRUE(rc::check([] {
    const std::vector<Place> places = islands(*rc::gen::inRange(1, 5), 4);
    Schedule schedule(places);
    std::map<std::string, Queued> queued;
    const int count = *rc::gen::inRange(1, 60);
    for (int i = 0; i < count; ++i) {
      Queued one{"b" + std::to_string(i),
                 *rc::gen::inRange(1, static_cast<int>(places.size()) + 1),
                 static_cast<double>(*rc::gen::inRange(0, 30)),
                 *rc::gen::inRange(0, 10) == 0,
                 {},
                 *rc::gen::arbitrary<bool>() ? "key" : ""};
      if (*rc::gen::inRange(0, 5) == 0) one.avoided = {0};
      schedule.add(one);
      queued.emplace(one.batch, one);
    }
    // Expectations may be wrong in both directions.
    run_all(schedule, queued, places, [](const Queued& one) {
      return 1 + *rc::gen::inRange(0, 2000 + static_cast<int>(one.expected_seconds) * 2000);
    });
  }));
}

}  // namespace
}  // namespace graphproof::launcher
