#include "launcher/cli/bisect/search.h"

#include <gtest/gtest.h>

namespace graphproof::cli {
namespace {

using Set = std::set<std::string>;
using Names = std::vector<std::string>;
const Names kAll = {"nccl", "torch", "driver", "NCCL_X"};

struct SearchTest : testing::Test {
  /// Searches where a stack fails if `bad` says so.
  Culprit find(const std::function<bool(const Set&)>& bad) {
    tried.clear();
    return search(kAll, [&](const Set& of_b) {
      tried.push_back(of_b);
      return bad(of_b) ? Outcome::bad : Outcome::good;
    });
  }
  std::vector<Set> tried;
};

TEST_F(SearchTest, OneComponentThatIsEnoughIsFoundBySwappingOneAtATime) {
  const Culprit found = find([](const Set& of_b) { return of_b.contains("driver"); });
  EXPECT_EQ(found.answer, Culprit::Answer::found);
  EXPECT_EQ(found.components, Names{"driver"});
  EXPECT_FALSE(found.together);
  ASSERT_EQ(tried.size(), 6u);
  EXPECT_TRUE(tried[0].empty());
  EXPECT_EQ(tried[1].size(), kAll.size());
  for (std::size_t i = 2; i < tried.size(); ++i) EXPECT_EQ(tried[i].size(), 1u);
}

TEST_F(SearchTest, TwoThatAreEachEnoughAreBothFound) {
  const Culprit found =
      find([](const Set& of_b) { return of_b.contains("nccl") || of_b.contains("NCCL_X"); });
  EXPECT_EQ(found.components, (Names{"nccl", "NCCL_X"}));
  EXPECT_FALSE(found.together);
}

TEST_F(SearchTest, ComponentsThatFailOnlyTogetherAreFoundWithoutTheOthers) {
  const Culprit found =
      find([](const Set& of_b) { return of_b.contains("nccl") && of_b.contains("NCCL_X"); });
  EXPECT_EQ(found.components, (Names{"nccl", "NCCL_X"}));
  EXPECT_TRUE(found.together);
  const Culprit all = find([](const Set& of_b) { return of_b.size() == kAll.size(); });
  EXPECT_EQ(all.components, kAll);
}

TEST_F(SearchTest, StacksThatDoNotDifferInTheCaseEndIt) {
  EXPECT_EQ(find([](const Set&) { return true; }).answer, Culprit::Answer::both_fail);
  EXPECT_EQ(tried.size(), 1u);
  EXPECT_EQ(find([](const Set&) { return false; }).answer, Culprit::Answer::both_pass);
  EXPECT_EQ(tried.size(), 2u);
}

TEST_F(SearchTest, AStackWithoutAnAnswerIsNoGuess) {
  for (const Outcome outcome : {Outcome::unclear, Outcome::interrupted}) {
    const Culprit found = search(kAll, [&](const Set& of_b) {
      if (of_b == Set{"torch"}) return outcome;
      return of_b.size() > 1 ? Outcome::bad : Outcome::good;
    });
    EXPECT_EQ(found.answer, outcome == Outcome::unclear ? Culprit::Answer::unclear
                                                        : Culprit::Answer::interrupted);
    EXPECT_EQ(found.at, Set{"torch"});
    EXPECT_TRUE(found.components.empty());
  }
}

}  // namespace
}  // namespace graphproof::cli
