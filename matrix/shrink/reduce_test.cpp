#include "matrix/shrink/reduce.h"

#include <gtest/gtest.h>

#include "matrix/catalogue/catalogue.h"

namespace graphproof::shrink {
namespace {

const matrix::AxisTable& axes() {
  static const matrix::Catalogue kCatalogue = matrix::load_catalogue();
  return kCatalogue.axes;
}
matrix::Case named(const std::string& name) { return matrix::case_from_name(axes(), name, "test"); }

/// The name of the smallest case, and how many jobs it took.
std::pair<std::string, int> reduced(
    const std::string& failing, std::set<std::string> keep,
    const std::function<bool(const matrix::Case&)>& fails, int tries = 1,
    const std::function<bool(const matrix::Case&)>& allowed = [](const matrix::Case&) {
      return true;
    }) {
  Reducer reducer(axes(), named(failing), std::move(keep), tries, allowed);
  while (const auto next = reducer.next()) {
    EXPECT_TRUE(allowed(*next));
    reducer.record(fails(*next) ? Outcome::fail : Outcome::pass);
  }
  return {matrix::case_name(axes(), reducer.smallest()), reducer.jobs()};
}

std::int64_t value(const matrix::Case& one, const char* axis) {
  return matrix::integer_of(axes(), one, axis);
}

TEST(ReduceTest, WhatNeedsOnlyTheCombinationIsOneJobAway) {
  const auto manual = [](const matrix::Case& one) {
    return matrix::text_of(axes(), one, "impl") == "manual";
  };
  EXPECT_EQ(reduced("impl=manual,tp=2,dp=2,microbatches=4,dropout=true,steps=9", {"impl"}, manual),
            (std::pair<std::string, int>("impl=manual,layers=1,steps=2", 1)));
}

TEST(ReduceTest, ASizeThatIsNeededStaysAsLargeAsItHasToBe) {
  const auto many = [](const matrix::Case& one) {
    return value(one, "microbatches") >= 4 && value(one, "layers") >= 2;
  };
  const auto [name, jobs] = reduced("microbatches=16,layers=8,tp=2", {}, many);
  EXPECT_EQ(name, "microbatches=4,steps=2");
  EXPECT_LE(jobs, kMostReductions);
}

TEST(ReduceTest, ASizeOfTheCombinationIsHalvedOnly) {
  std::vector<std::int64_t> asked;
  reduced("tp=8,dropout=true", {"tp"}, [&](const matrix::Case& one) {
    asked.push_back(value(one, "tp"));
    return value(one, "tp") >= 4;
  });
  EXPECT_EQ(std::count(asked.begin(), asked.end(), 1), 0);
  EXPECT_EQ(std::count(asked.begin(), asked.end(), 2), 1);
}

TEST(ReduceTest, WhatIsNotAllowedIsNotAskedFor) {
  // dp has to stay: the plainest case is not allowed, but the next ones are.
  const auto [name, jobs] = reduced(
      "dp=2,ep=2,model=moe,experts=4,dropout=true", {"ep"},
      [](const matrix::Case&) { return true; }, 1,
      [](const matrix::Case& one) { return value(one, "dp") >= value(one, "ep"); });
  EXPECT_EQ(name.find("dropout"), std::string::npos) << name;
  EXPECT_GE(value(named(name), "dp"), value(named(name), "ep"));
  EXPECT_GE(jobs, 1);
}

TEST(ReduceTest, ASizeIsMadeAsSmallAsItIsAllowedToBe) {
  // A graph that is replayed once shows little, so the smallest number of steps is not allowed.
  const auto allowed = [](const matrix::Case& one) { return value(one, "steps") >= 4; };
  EXPECT_EQ(reduced(
                "impl=manual,tp=2,dropout=true,steps=9", {"impl"},
                [](const matrix::Case&) { return true; }, 1, allowed),
            (std::pair<std::string, int>("impl=manual,layers=1,steps=4", 1)));
  const auto wide = [](const matrix::Case& one) { return value(one, "tp") >= 2; };
  EXPECT_EQ(reduced("impl=manual,tp=2,steps=9", {"impl"}, wide, 1, allowed).first,
            "impl=manual,tp=2,layers=1,steps=4");
}

TEST(ReduceTest, ThePlantedFaultStays) {
  EXPECT_NE(
      reduced("fault=M23,impl=manual,dropout=true", {}, [](const matrix::Case&) { return true; })
          .first.find("fault=M23"),
      std::string::npos);
}

TEST(ReduceTest, WhereFailuresAreFlakyOnePassDoesNotDecide) {
  int asked = 0;
  const auto second_time = [&](const matrix::Case&) { return ++asked % 2 == 0; };
  EXPECT_EQ(reduced("impl=manual,dropout=true,tp=2", {"impl"}, second_time, 3).first,
            "impl=manual,layers=1,steps=2");
}

}  // namespace
}  // namespace graphproof::shrink
