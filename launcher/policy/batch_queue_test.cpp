#include "launcher/policy/batch_queue.h"

#include <gtest/gtest.h>

namespace graphproof::launcher {
namespace {

struct BatchQueueTest : testing::Test {
  CaseGroup group(int ranks, const std::string& check = "D01.lockstep",
                  const std::string& expects = "pass") {
    Attempt attempt;
    attempt.line.ranks = ranks;
    attempt.line.required_checks = {check};
    attempt.line.expect.kind = expects;
    attempt.line.expected_seconds = 1;
    return {.attempts = {attempt}};
  }
  /// The batches that start now.
  std::vector<std::string> start(BatchQueue& queue) {
    std::vector<std::string> names;
    for (const Start& one : queue.schedule().start()) names.push_back(one.batch);
    return names;
  }
  /// The batches whose ranks may be started before their turn.
  std::vector<std::string> prestart(BatchQueue& queue) {
    std::vector<std::string> names;
    for (const Start& one : queue.schedule().prestart()) names.push_back(one.batch);
    return names;
  }
  const reports::CheckEffects effects = {{"D01.lockstep", {"fail.numerics", {"sim"}}},
                                         {"D61.speed", {"fail.perf", {"sim"}}}};
};
using Names = std::vector<std::string>;

TEST_F(BatchQueueTest, BatchesAreNumberedOnFromThoseThatTheRunHas) {
  BatchQueue queue(Schedule(4), effects, 1);
  EXPECT_EQ(queue.add(group(1), {}, true), "b001");
  queue.number_after(41);
  EXPECT_EQ(queue.add(group(1), {}, true), "b042");
}

TEST_F(BatchQueueTest, AGroupIsHandedOutOnceItsBatchStarts) {
  BatchQueue queue(Schedule(4), effects, 1);
  EXPECT_TRUE(queue.empty());
  queue.add(group(2), {}, true);
  EXPECT_EQ(start(queue), Names{"b001"});
  EXPECT_EQ(queue.group("b001").ranks(), 2);
  EXPECT_EQ(queue.take("b001").ranks(), 2);
  EXPECT_TRUE(queue.empty());
}

TEST_F(BatchQueueTest, WhatIsDroppedDoesNotStart) {
  BatchQueue queue(Schedule(4), effects, 1);
  queue.add(group(1), {}, true);
  queue.add(group(2), {}, true);
  queue.add(group(3), {}, true);
  queue.drop("b002");
  EXPECT_EQ(queue.drop_all(), (Names{"b003", "b001"}));
  EXPECT_TRUE(queue.empty());
  EXPECT_EQ(start(queue), Names{});
}

TEST_F(BatchQueueTest, ACaseThatMeasuresTimeRunsAloneOnTheHost) {
  BatchQueue queue(Schedule(4), effects, 1);
  queue.add(group(1, "D61.speed"), {}, true);
  queue.add(group(1), {}, true);
  EXPECT_EQ(start(queue), Names{"b001"});
  EXPECT_EQ(prestart(queue), Names{}) << "nothing may run next to it";
}

TEST_F(BatchQueueTest, RanksOfTheSameEnvironmentMayStartBeforeTheirTurn) {
  BatchQueue queue(Schedule(1), effects, 1);
  queue.add(group(1), {}, true);
  CaseGroup other = group(1);
  other.attempts.front().line.environment = {{"NCCL_ALGO", "Tree"}};
  queue.add(std::move(other), {}, true);
  queue.add(group(1), {}, true);
  EXPECT_EQ(start(queue), Names{"b001"});
  EXPECT_EQ(prestart(queue), Names{"b003"});
}

TEST_F(BatchQueueTest, RanksThatGainNothingOrMayNotAreNotStartedBeforeTheirTurn) {
  struct Row {
    const char* expects;
    bool may_prestart;
  };
  for (const Row& row : {Row{"rejected", true}, Row{"hazard", true}, Row{"pass", false}}) {
    SCOPED_TRACE(row.expects);
    BatchQueue queue(Schedule(1), effects, 1);
    queue.add(group(1), {}, true);
    queue.add(group(1, "D01.lockstep", row.expects), {}, row.may_prestart);
    EXPECT_EQ(start(queue), Names{"b001"});
    EXPECT_EQ(prestart(queue), Names{});
  }
}

TEST_F(BatchQueueTest, RanksThatShareGpusHaveAllOfThem) {
  BatchQueue alone(Schedule(4), effects, 1), shared(Schedule(4), effects, 2);
  EXPECT_EQ(alone.slots_of(group(3)), 3);
  EXPECT_EQ(shared.slots_of(group(3)), 3);
  EXPECT_EQ(shared.slots_of(group(8)), 4);
}

}  // namespace
}  // namespace graphproof::launcher
