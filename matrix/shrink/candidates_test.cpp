#include "matrix/shrink/candidates.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

namespace graphproof::shrink {
namespace {

const std::vector<Belief> kExact = {{{1e-3, 1e-3}, 1}};

double sum_of(const std::vector<Likely>& likely) {
  return std::accumulate(likely.begin(), likely.end(), 0.0,
                         [](double sum, const Likely& one) { return sum + one.probability(); });
}

TEST(CandidatesTest, EverySetOfUpToFourBitsIsThereOnceAndTheirProbabilitiesAddUp) {
  // 1 + 6 + 15 + 20 + 15 sets of up to four bits, and the set of all six.
  const std::vector<Likely> all = Candidates(6, kExact).likely(1, 1000);
  EXPECT_EQ(all.size(), 58u);
  EXPECT_NEAR(sum_of(all), 1, 1e-12);
  std::vector<Mask> masks;
  for (const Likely& one : all) masks.push_back(one.mask);
  std::sort(masks.begin(), masks.end());
  EXPECT_EQ(std::adjacent_find(masks.begin(), masks.end()), masks.end());
  EXPECT_EQ(Candidates(3, kExact).likely(1, 1000).size(), 8u)
      << "the whole is a set of three already";
}

TEST(CandidatesTest, SixtyFourBitsHaveAPlace) {
  const Candidates candidates(64, kExact);
  EXPECT_EQ(candidates.whole(), ~Mask{0});
  EXPECT_EQ(candidates.likely(0.3, 1).size(), 1u);
}

TEST(CandidatesTest, APassedRowRulesOutWhatItHas) {
  Candidates candidates(6, kExact);
  candidates.learn(0b001111, false);
  double inside = 0;
  for (const Likely& one : candidates.within(0b001111)) inside += one.probability();
  EXPECT_LT(inside, 0.01);
  const std::vector<double> share = candidates.share_of_bits();
  EXPECT_GT(share[5], share[0]);
}

TEST(CandidatesTest, AFailedRowHoldsTheCause) {
  Candidates candidates(6, kExact);
  candidates.learn(0b000011, true);
  candidates.learn(0b111110, false);
  candidates.learn(0b111101, false);
  EXPECT_EQ(candidates.likely(1, 1).front().mask, 0b000011u);
  EXPECT_GT(candidates.likely(1, 1).front().probability(), 0.9);
}

TEST(CandidatesTest, PassesOfWhatFailedBeforeRaiseTheFlakyBelief) {
  Candidates candidates(4, {{{1e-3, 1e-3}, 0.5}, {{0.3, 0.02}, 0.5}});
  for (int i = 0; i < 3; ++i) candidates.learn(0b1111, true);
  EXPECT_GT(candidates.beliefs_now()[0], 0.7);
  candidates.learn(0b1111, false);
  EXPECT_GT(candidates.beliefs_now()[1], 0.9);
}

TEST(InformationTest, ARowThatHalfOfTheProbabilityTriggersGivesABit) {
  std::vector<Likely> likely(2);
  likely[0] = {.mask = 0b01, .by_belief = {0.5}};
  likely[1] = {.mask = 0b10, .by_belief = {0.5}};
  const std::vector<Belief> certain = {{{0, 0}, 1}};
  const Mask one[] = {0b01}, none[] = {0b00}, both[] = {0b11}, twice[] = {0b01, 0b01};
  EXPECT_NEAR(information(likely, certain, one), 1, 1e-12);
  EXPECT_NEAR(information(likely, certain, none), 0, 1e-12);
  EXPECT_NEAR(information(likely, certain, both), 0, 1e-12);
  EXPECT_NEAR(information(likely, certain, twice), 1, 1e-12) << "the second outcome is known";
  const std::vector<Belief> flaky = {{{0.3, 0.02}, 1}};
  EXPECT_GT(information(likely, flaky, twice), information(likely, flaky, one));
  EXPECT_LT(information(likely, flaky, twice), 1);
}

TEST(InformationTest, TwoRowsGiveNoMoreThanTheirSum) {
  Candidates candidates(8, kExact);
  const std::vector<Likely> likely = candidates.likely(0.999, 1000);
  const Mask left[] = {0b00001111}, right[] = {0b00110011}, both[] = {0b00001111, 0b00110011};
  const double apart = information(likely, kExact, left) + information(likely, kExact, right);
  EXPECT_LE(information(likely, kExact, both), apart + 1e-9);
  EXPECT_GE(information(likely, kExact, both),
            std::max(information(likely, kExact, left), information(likely, kExact, right)));
}

}  // namespace
}  // namespace graphproof::shrink
