#include "launcher/batch/hang_detector.h"

#include <gtest/gtest.h>

namespace graphproof::launcher {
namespace {

using record::Phase;

record::Limits limits() {
  record::Limits limits;
  for (std::size_t i = 0; i < record::kPhaseCount; ++i) limits[static_cast<Phase>(i)] = 1000;
  limits[Phase::init] = 10000;
  return limits;
}

/// A detector of two ranks and two cases, with the heartbeats that the ranks send.
struct Ranks {
  HangDetector detector{2, {{"one", 1, limits()}, {"two", 1, limits()}}, 0};

  record::Heartbeat line(int rank, std::string event) {
    record::Heartbeat line;
    line.event = std::move(event);
    line.rank = rank;
    line.pid = 100 + rank;
    return line;
  }
  bool hello(int rank, std::int64_t now) { return detector.heartbeat(line(rank, "hello"), now); }
  bool bye(int rank, std::int64_t now) { return detector.heartbeat(line(rank, "bye"), now); }
  bool of_case(int rank, const char* event, const char* id, std::int64_t now) {
    record::Heartbeat beat = line(rank, event);
    beat.case_id = id;
    beat.attempt = 1;
    return detector.heartbeat(beat, now);
  }
  bool phase(int rank, const char* id, Phase phase, std::int64_t step, std::int64_t sequence,
             std::int64_t now) {
    record::Heartbeat beat = line(rank, "phase");
    beat.case_id = id;
    beat.attempt = 1;
    beat.phase = phase;
    beat.step = step;
    beat.collective = record::Collective{sequence, "all_reduce", "tp"};
    return detector.heartbeat(beat, now);
  }
  bool progress(int rank, const char* id, std::int64_t begun, std::int64_t now) {
    record::Heartbeat beat = line(rank, "progress");
    beat.case_id = id;
    beat.attempt = 1;
    beat.progress = {{.group = "tp",
                      .first_rank = 0,
                      .begun = begun,
                      .ended = 40,
                      .op = "all_reduce",
                      .sequence = begun}};
    return detector.heartbeat(beat, now);
  }
  void begin(const char* id, std::int64_t now) {
    for (int rank : {0, 1}) {
      hello(rank, now);
      ASSERT_TRUE(of_case(rank, "case_begin", id, now));
    }
  }
};

TEST(HangDetectorTest, ARankThatNeverSendsHelloHangsInInit) {
  Ranks ranks;
  ranks.hello(0, 10);
  ranks.of_case(0, "case_begin", "one", 20);
  ranks.phase(0, "one", Phase::init, 0, 0, 9990);
  EXPECT_FALSE(ranks.detector.overdue(10000));
  const auto hang = ranks.detector.overdue(10001);
  ASSERT_TRUE(hang);
  EXPECT_EQ(hang->phase, Phase::init);
  EXPECT_EQ(hang->missing_rank, 1);
  EXPECT_EQ(hang->limit_ms, 10000);
  EXPECT_EQ(hang->waiting_ranks, std::vector<int>{0});
  EXPECT_EQ(hang->case_index, 0u);
}

TEST(HangDetectorTest, TheTimeThatPrestartedRanksWaitedIsNoDelay) {
  Ranks ranks;
  ranks.hello(0, 10);
  ranks.hello(1, 10);
  EXPECT_TRUE(ranks.detector.heartbeat(ranks.line(0, "ready"), 20));
  EXPECT_FALSE(ranks.detector.all_ready());
  EXPECT_TRUE(ranks.detector.heartbeat(ranks.line(1, "ready"), 30));
  EXPECT_TRUE(ranks.detector.all_ready());
  ranks.detector.restart(500000);
  EXPECT_FALSE(ranks.detector.overdue(510000));
  EXPECT_TRUE(ranks.detector.overdue(510001)) << "from then on init's limit holds as ever";
}

TEST(HangDetectorTest, TheLeastAdvancedRankIsMissingWhicheverIsLateFirst) {
  Ranks ranks;
  ranks.begin("one", 0);
  ranks.phase(0, "one", Phase::replay, 3, 17,
              100);  // waits since 100, so it passes its limit first
  ranks.phase(1, "one", Phase::replay, 2, 16, 300);
  EXPECT_FALSE(ranks.detector.overdue(1100));
  const auto hang = ranks.detector.overdue(1101);
  ASSERT_TRUE(hang);
  EXPECT_EQ(hang->missing_rank, 1);
  EXPECT_EQ(hang->waiting_ranks, std::vector<int>{0});
  EXPECT_EQ(hang->phase, Phase::replay);
  EXPECT_EQ(hang->last_collective, (record::Collective{16, "all_reduce", "tp"}));
}

TEST(HangDetectorTest, TheTimeForWhichTheMissingRankHadNoProcessorCountsForNoLimit) {
  Ranks ranks;
  ranks.begin("one", 0);
  ranks.detector.queued(1, 5000);  // ahead of the step, so it excuses nothing
  ranks.phase(0, "one", Phase::replay, 3, 17, 100);
  ranks.phase(1, "one", Phase::replay, 2, 16, 300);
  ranks.detector.queued(0, 100000);  // the rank that waits asks again and again
  ranks.detector.queued(1, 5600);
  EXPECT_FALSE(ranks.detector.overdue(1700)) << "rank 0 is late by 600 ms";
  const auto hang = ranks.detector.overdue(1701);
  ASSERT_TRUE(hang);
  EXPECT_EQ(hang->missing_rank, 1);
  EXPECT_EQ(hang->silent_ms, 1401);
  ASSERT_TRUE(ranks.phase(1, "one", Phase::replay, 3, 17, 1800));
  ASSERT_TRUE(ranks.phase(0, "one", Phase::replay, 4, 18, 1800));
  EXPECT_FALSE(ranks.detector.overdue(2800)) << "its queue of the step before is over";
  EXPECT_TRUE(ranks.detector.overdue(2801));
}

TEST(HangDetectorTest, ARankThatAsksAgainAndAgainOnABusyMachineIsFoundAfterTenLimits) {
  Ranks ranks;
  ranks.begin("one", 0);
  for (int rank : {0, 1}) ranks.phase(rank, "one", Phase::replay, 0, 1, 0);
  for (int rank : {0, 1}) ranks.detector.queued(rank, 1000000);
  EXPECT_FALSE(ranks.detector.overdue(10000));
  EXPECT_TRUE(ranks.detector.overdue(10010));
}

TEST(HangDetectorTest, WhatTheDevicesCountedNamesTheRankThatIsStuckInAReplay) {
  Ranks ranks;
  ranks.begin("one", 0);
  // The hosts have issued the same, and rank 0 has been silent for longest.
  ranks.phase(0, "one", Phase::replay, 3, 17, 100);
  ranks.phase(1, "one", Phase::replay, 3, 17, 150);
  ASSERT_TRUE(ranks.progress(0, "one", 41, 300));
  ASSERT_TRUE(ranks.progress(1, "one", 40, 300));
  const auto hang = ranks.detector.overdue(1101);
  ASSERT_TRUE(hang) << "what a device counts is no heartbeat of its host";
  EXPECT_EQ(hang->missing_rank, 1);
  EXPECT_EQ(hang->waiting_ranks, std::vector<int>{0});
  EXPECT_EQ(ranks.detector.progress(0, 1).device->at(0).begun, 40);
}

TEST(HangDetectorTest, RanksInsideOneCollectiveAreToldApartByTheirHosts) {
  Ranks ranks;
  ranks.begin("one", 0);
  ranks.phase(0, "one", Phase::replay, 3, 17, 100);
  ranks.phase(1, "one", Phase::replay, 2, 16, 150);
  for (const int rank : {0, 1}) ASSERT_TRUE(ranks.progress(rank, "one", 41, 300));
  const auto hang = ranks.detector.overdue(1101);
  ASSERT_TRUE(hang);
  EXPECT_EQ(hang->missing_rank, 1);
}

TEST(HangDetectorTest, ALimitOfStepsCountsFromTheLastStep) {
  Ranks ranks;
  ranks.begin("one", 0);
  for (int step = 0; step < 10; ++step)
    for (int rank : {0, 1})
      ASSERT_TRUE(ranks.phase(rank, "one", Phase::replay, step, step, 900 * step));
  EXPECT_FALSE(ranks.detector.overdue(9 * 900 + 1000));
  EXPECT_TRUE(ranks.detector.overdue(9 * 900 + 1001));
}

TEST(HangDetectorTest, CollectivesWithoutAStepAreNoProgress) {
  Ranks ranks;
  ranks.begin("one", 0);
  for (std::int64_t now = 0; now <= 1001; now += 77)
    for (int rank : {0, 1}) ASSERT_TRUE(ranks.phase(rank, "one", Phase::capture, 0, now, now));
  const auto hang = ranks.detector.overdue(1002);
  ASSERT_TRUE(hang) << "a rank that is busy for ever without a step is a hang too";
  EXPECT_EQ(hang->phase, Phase::capture);
}

TEST(HangDetectorTest, ARankInAnEarlierCaseHoldsTheOthersUp) {
  Ranks ranks;
  ranks.begin("one", 0);
  ranks.phase(1, "one", Phase::teardown_comm, 0, 50, 10);
  ranks.of_case(0, "case_end", "one", 20);
  ranks.of_case(0, "case_begin", "two", 30);
  ranks.phase(0, "two", Phase::init, 0, 0, 40);
  const auto hang = ranks.detector.overdue(1011);
  ASSERT_TRUE(hang);
  EXPECT_EQ(hang->missing_rank, 1);
  EXPECT_EQ(hang->case_index, 0u);
  EXPECT_EQ(hang->phase, Phase::teardown_comm);
}

TEST(HangDetectorTest, AProcessThatDoesNotEndAfterItsLastCaseHangsInTeardown) {
  Ranks ranks;
  ranks.begin("one", 0);
  for (int rank : {0, 1}) {
    ranks.of_case(rank, "case_end", "one", 10);
    ranks.of_case(rank, "case_begin", "two", 20);
    ranks.of_case(rank, "case_end", "two", 30);
    EXPECT_TRUE(ranks.bye(rank, 40));
  }
  EXPECT_FALSE(ranks.detector.overdue(1040));
  ranks.detector.gone(0, 1040);
  const auto hang = ranks.detector.overdue(1041);
  ASSERT_TRUE(hang);
  EXPECT_EQ(hang->phase, Phase::teardown_process);
  EXPECT_EQ(hang->missing_rank, 1);
  EXPECT_EQ(hang->case_index, 1u);
  EXPECT_TRUE(hang->waiting_ranks.empty());
}

TEST(HangDetectorTest, TheFirstDeadIsTheFirstThatLeftWithoutGoodbye) {
  Ranks ranks;
  ranks.begin("one", 0);
  ranks.detector.gone(1, 50);
  ranks.detector.gone(0, 60);
  EXPECT_EQ(ranks.detector.first_dead(), 1);
  EXPECT_TRUE(ranks.detector.all_gone());
  EXPECT_FALSE(ranks.detector.overdue(99999)) << "a dead rank is not late";
}

TEST(HangDetectorTest, GoodbyeIsNoDeath) {
  Ranks ranks;
  ranks.begin("one", 0);
  ranks.bye(0, 10);
  ranks.detector.gone(0, 20);
  EXPECT_EQ(ranks.detector.first_dead(), std::nullopt);
}

TEST(HangDetectorTest, ACaseEndsWhenEveryRankHasEndedIt) {
  Ranks ranks;
  ranks.begin("one", 0);
  EXPECT_TRUE(ranks.detector.begun(0));
  EXPECT_FALSE(ranks.detector.begun(1));
  ranks.of_case(0, "case_end", "one", 10);
  EXPECT_FALSE(ranks.detector.ended(0));
  ranks.of_case(1, "case_end", "one", 20);
  EXPECT_TRUE(ranks.detector.ended(0));
  EXPECT_EQ(ranks.detector.current(), 1u);
}

TEST(HangDetectorTest, ARefusedCaseMayComeBeforeItsTurnAndNoneInsideAnother) {
  Ranks ranks;
  ranks.begin("two", 10);
  EXPECT_FALSE(ranks.of_case(0, "case_begin", "one", 11)) << "it is still in the other";
  EXPECT_EQ(ranks.detector.case_of(0), 1u);
  for (int rank : {0, 1}) EXPECT_TRUE(ranks.of_case(rank, "case_end", "two", 20));
  EXPECT_FALSE(ranks.of_case(0, "case_begin", "two", 21)) << "it has ended";
  EXPECT_TRUE(ranks.detector.ended(1));
  EXPECT_EQ(ranks.detector.current(), 0u);
  EXPECT_EQ(ranks.detector.as_begun(), (std::vector<std::size_t>{1}));
  for (int rank : {0, 1}) EXPECT_TRUE(ranks.of_case(rank, "case_begin", "one", 30));
  EXPECT_TRUE(ranks.phase(0, "one", Phase::eager, 3, 7, 40));
  EXPECT_EQ(ranks.detector.as_begun(), (std::vector<std::size_t>{1, 0}));
  for (int rank : {0, 1}) EXPECT_TRUE(ranks.of_case(rank, "case_end", "one", 50));
  EXPECT_EQ(ranks.detector.current(), 2u);
  EXPECT_EQ(ranks.detector.case_of(0), 1u);
}

TEST(HangDetectorTest, TheMissingRankIsTheOneThatHasEndedTheFewestCases) {
  Ranks ranks;
  ranks.begin("two", 0);
  ranks.of_case(0, "case_end", "two", 10);
  ranks.of_case(0, "case_begin", "one", 10);
  ranks.phase(0, "one", Phase::init, 0, 0, 20);
  ranks.phase(1, "two", Phase::validate, 0, 0, 5);
  const auto hang = ranks.detector.overdue(10021);
  ASSERT_TRUE(hang);
  EXPECT_EQ(hang->missing_rank, 1);
  EXPECT_EQ(hang->case_index, 1u);
}

TEST(HangDetectorTest, NothingIsMeasuredFromTheEndOfTheCommunicatorsOn) {
  Ranks ranks;
  ranks.begin("one", 0);
  ranks.phase(0, "one", Phase::teardown_comm, 0, 0, 10);
  ranks.phase(1, "one", Phase::teardown_graph, 0, 0,
              10);  // also between two arms, of which the next measures memory
  EXPECT_FALSE(ranks.detector.measured(0));
  ranks.phase(1, "one", Phase::teardown_comm, 0, 0, 20);
  EXPECT_TRUE(ranks.detector.measured(0));
  ranks.of_case(0, "case_end", "one", 30);
  EXPECT_TRUE(ranks.detector.measured(0));
  EXPECT_FALSE(ranks.detector.measured(1));
}

TEST(HangDetectorTest, LinesThatDoNotBelongHereCountForNothing) {
  Ranks ranks;
  EXPECT_FALSE(ranks.of_case(0, "case_begin", "one", 1)) << "before hello";
  ranks.begin("one", 0);
  EXPECT_FALSE(ranks.hello(0, 5)) << "a second process";
  EXPECT_FALSE(ranks.hello(7, 5)) << "no such rank";
  EXPECT_FALSE(ranks.of_case(0, "case_begin", "one", 5)) << "again";
  EXPECT_FALSE(ranks.of_case(0, "case_begin", "two", 5)) << "before the first has ended";
  EXPECT_FALSE(ranks.of_case(0, "case_end", "three", 5)) << "no such case";
  record::Heartbeat other = ranks.line(0, "case_end");
  other.case_id = "one";
  other.attempt = 2;
  EXPECT_FALSE(ranks.detector.heartbeat(other, 5)) << "another attempt";
  ranks.bye(1, 6);
  EXPECT_FALSE(ranks.of_case(1, "case_end", "one", 7)) << "after bye";
}

}  // namespace
}  // namespace graphproof::launcher
