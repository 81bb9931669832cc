#include <gtest/gtest.h>

#include "suites/checks/testing/check_rows.h"
#include "suites/checks/testing/memory_lines.h"

namespace graphproof::checks {
namespace {

using nlohmann::json;

const json kTimeLimited = {{"impl", "full_iteration"},
                           {"tp", 2},
                           {"microbatches", 2},
                           {"perf_limit", "graph_step <= 1.02 * eager_step"}};

/// Sets the time of the graph steps of every block of rank 1 to a multiple of the eager steps'.
std::function<void(Attempt&)> graph_times(const std::vector<double>& factors) {
  return [=](Attempt& attempt) {
    for (Line& line : attempt.ranks[1].evidence->lines)
      if (line.kind == "paired_block")
        line.fields["graph_ms"] =
            factors[static_cast<std::size_t>(*integer(line, "block")) % factors.size()] *
            line.fields.at("eager_ms").get<double>();
    type_again(attempt);
  };
}

TEST(StatedTimes, Rows) {
  judge_rows(
      "D44.stated_times", kTimeLimited,
      {
          {.name = "graphs slower than eager on one rank, for which the other waits (M326)",
           .change = graph_times({1.10, 1.12, 1.11}),
           .rank = 1,
           .mentions = {"the times exceed the limit `graph_step <= 1.02 * eager_step`",
                        "1.08820217 of the limit, 1.08209745 to 1.09434133 (95 %) over 8 blocks",
                        "eager_step 6.04 ms, graph_step 6.7155 ms"}},
          {.name = "steps that launched nothing",
           .change =
               [](Attempt& a) {
                 set(a, {.rank = 1, .kind = "paired_block"}, "launches", 0);
                 type_again(a);
               },
           .rank = 1,
           .mentions = {"did not launch their graphs", "0 graph launches in 2 steps"}},
          {.name = "a time of 0",
           .change =
               [](Attempt& a) {
                 set(a, {.rank = 1, .kind = "paired_block"}, "graph_ms", 0.0);
                 type_again(a);
               },
           .rank = 1,
           .mentions = {"a time of block 0 is no time"}},
          {.name = "absent",
           .change = [](Attempt& a) { erase(a, {.rank = 1, .kind = "paired_block"}); },
           .rank = 1,
           .mentions = {"`paired_block` line of block 0"}},
          rank_died({.rank = 1, .kind = "paired_block"}),
      });
}

TEST(StatedTimes, OnlyAWholeIntervalDecides) {
  struct Case {
    std::vector<double> factors;
    record::Result want;
  };
  for (const auto& [factors, want] : {
           Case{{0.30, 0.31}, record::Result::pass},
           Case{{1.01, 1.0}, record::Result::pass},
           Case{{1.03, 1.04}, record::Result::fail},
           Case{{0.9, 1.2}, record::Result::unexercised},
           Case{{1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 9.0}, record::Result::unexercised},
       }) {
    const auto result = judge_one("D44.stated_times", kTimeLimited, graph_times(factors));
    EXPECT_EQ(result.result, want) << factors[0] << " " << record::to_text(result.message);
    if (want == record::Result::unexercised) {
      EXPECT_NE(result.message.got.find("does not decide"), std::string::npos);
      EXPECT_NE(result.message.next.find("quiet machine"), std::string::npos);
    }
  }
}

TEST(StatedTimes, EveryLimitOfAConjunctionIsJudged) {
  json axes = kTimeLimited;
  axes["perf_limit"] = "graph_step <= 1.02 * eager_step and graph_launch <= 0.4";
  const auto slow_launch = judge_one("D44.stated_times", axes, [](Attempt&) {});
  EXPECT_EQ(slow_launch.result, record::Result::fail);
  EXPECT_NE(slow_launch.message.what.find("graph_launch <= 0.4"), std::string::npos);
  axes["perf_limit"] =
      "eager_step >= 2 * graph_step and graph_launch <= 0.1 * microbatches * pp + 0.4";
  EXPECT_EQ(judge_one("D44.stated_times", axes, [](Attempt&) {}).result, record::Result::pass);
}

TEST(StatedTimes, OfRanksThatShareGpusAreNotJudged) {
  for (const double factor : {0.3, 3.0}) {
    const auto result = judge_one("D44.stated_times", kTimeLimited, [&](Attempt& attempt) {
      graph_times({factor})(attempt);
      share_gpus(attempt);
    });
    EXPECT_EQ(result.result, record::Result::unexercised) << record::to_text(result.message);
    EXPECT_EQ(result.message.next, "run the case with a GPU for each rank");
  }
}

TEST(StatedTimes, AreNotApplicableWithoutALimitOrWithOldEvidence) {
  EXPECT_EQ(judge_one("D44.stated_times", kTwoRanks, [](Attempt&) {}).result,
            record::Result::not_applicable);
}

}  // namespace
}  // namespace graphproof::checks
