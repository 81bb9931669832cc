#include "launcher/policy/warm_starts.h"

#include <gtest/gtest.h>

#include <set>

#include "launcher/testing/fake_batch.h"

namespace graphproof::launcher {
namespace {

struct WarmStartsTest : testing::Test {
  std::shared_ptr<FakeBatch> add(const std::string& name, int pid = 0) {
    auto batch = std::make_shared<FakeBatch>(name, pid);
    starts.add(name, batch);
    placed.insert(name);
    return batch;
  }
  /// The names that lost their place in this round.
  std::vector<std::string> step() {
    std::vector<std::string> names;
    for (const auto& [name, batch] :
         starts.step(0, [this](const std::string& name) { return placed.contains(name); }))
      names.push_back(name);
    return names;
  }
  WarmStarts starts{true};
  std::set<std::string> placed;
};

TEST_F(WarmStartsTest, ABatchWaitsUntilItsTurnComes) {
  const auto batch = add("b002");
  EXPECT_EQ(step(), std::vector<std::string>{});
  EXPECT_EQ(batch->steps, 1);
  EXPECT_FALSE(batch->stopped);
  EXPECT_EQ(starts.take("b002"), batch);
  EXPECT_EQ(starts.take("b002"), nullptr) << "it was handed over";
  EXPECT_EQ(starts.take("b003"), nullptr) << "it was never prestarted";
}

TEST_F(WarmStartsTest, ABatchWithoutItsPlaceIsGivenUpAndKeptUntilItsProcessesAreGone) {
  const auto lost = add("b002"), other = add("b003");
  placed.erase("b002");
  EXPECT_EQ(step(), std::vector<std::string>{"b002"});
  EXPECT_TRUE(lost->stopped);
  EXPECT_FALSE(other->stopped);
  EXPECT_FALSE(starts.idle());
  EXPECT_EQ(step(), std::vector<std::string>{}) << "its cases were queued anew already";
  lost->is_over = true;
  step();
  EXPECT_TRUE(starts.idle());
  EXPECT_EQ(starts.take("b003"), other);
}

TEST_F(WarmStartsTest, ABatchThatIsOverBeforeItsTurnLostItsNode) {
  const auto batch = add("b002");
  batch->is_over = true;
  EXPECT_EQ(step(), std::vector<std::string>{"b002"});
  EXPECT_TRUE(starts.idle());
}

TEST_F(WarmStartsTest, WhenTheRunEndsAllAreGivenUp) {
  const auto one = add("b002"), two = add("b003");
  starts.give_up_all(0);
  EXPECT_TRUE(one->stopped && two->stopped);
  EXPECT_EQ(starts.take("b002"), nullptr);
  EXPECT_EQ(starts.end_all(0).size(), 2u) << "they still end";
  EXPECT_TRUE(starts.idle());
}

TEST_F(WarmStartsTest, TheStartersOfAllItsRanksAreKnown) {
  add("b002", 12);
  starts.give_up(std::make_shared<FakeBatch>("b001", 11), 0);
  EXPECT_EQ(starts.starter_pids(), (std::vector<int>{12, 11}));
}

TEST_F(WarmStartsTest, AStartThatWentWrongIsTheLast) {
  EXPECT_TRUE(starts.enabled());
  starts.disable();
  EXPECT_FALSE(starts.enabled());
  EXPECT_FALSE(WarmStarts(false).enabled());
}

}  // namespace
}  // namespace graphproof::launcher
