#include <gtest/gtest.h>

#include "suites/checks/testing/check_rows.h"

namespace graphproof::checks {
namespace {

using Counters = std::vector<int>;

TEST(Coverage, Rows) {
  const Where at_three{.rank = 0, .kind = "replay", .arm = "lockstep_graph", .step = 3};
  judge_rows(
      "D18.coverage", {{"impl", "manual"}, {"microbatches", 2}},
      {
          {.name = "a layer ran at capture (M15)",
           .change =
               [](Attempt& a) {
                 set(a, {.rank = 0, .kind = "capture", .arm = "lockstep_graph"}, "counter_after",
                     Counters{4, 6});
               },
           .rank = 0,
           .mentions = {"layer 1 ran while graph training of arm lockstep_graph was captured",
                        "2 forwards"}},
          {.name = "a layer did not run at replay (M15)",
           .change = [=](Attempt& a) { set(a, at_three, "counter_after", Counters{8, 6}); },
           .rank = 0,
           .mentions = {"up to step 3 of arm lockstep_graph layer 1 did not run", "0 forwards",
                        "2 forwards in 1 steps of 2 microbatches"}},
          {.name = "half the microbatches in all of the evidence",
           .change =
               [=](Attempt& a) {
                 set(a, at_three, "counter_after", Counters{7, 7});
                 set(a, at_three, "counter_per_replay", Counters{1, 1});
               },
           .rank = 0,
           .mentions = {"1 forwards"}},
          {.name = "one layer is not counted",
           .change =
               [=](Attempt& a) {
                 set(a, at_three, "counter_before", Counters{6});
                 set(a, at_three, "counter_after", Counters{8});
               },
           .rank = 0,
           .mentions = {"are missing", "2 layers"}},
          {.name = "no counters",
           .change = [=](Attempt& a) { set(a, at_three, "counter_after", Counters{}); },
           .rank = 0,
           .mentions = {"are missing"}},
          {.name = "no counters at capture",
           .change =
               [](Attempt& a) {
                 set(a, {.rank = 0, .kind = "capture", .arm = "solo_graph"}, "counter_before",
                     Counters{});
               },
           .rank = 0,
           .mentions = {"the capture of graph training of arm solo_graph are missing"},
           .also = {"D37.warmed_up"}},
          {.name = "the free run left a layer out",
           .change =
               [](Attempt& a) {
                 set(a, {.rank = 0, .kind = "replay", .arm = "free_graph"}, "counter_after",
                     Counters{10, 4});
               },
           .rank = 0,
           .mentions = {"arm free_graph layer 1", "4 forwards", "10 forwards in 5 steps"}},
          {.name = "the second run left a layer out",
           .change =
               [](Attempt& a) {
                 set(a, {.rank = 0, .kind = "replay", .arm = "solo_graph"}, "counter_after",
                     Counters{22, 24});
               },
           .rank = 0,
           .mentions = {"arm solo_graph layer 0", "22 forwards", "24 forwards in 12 steps"}},
          {.name = "absent",
           .change = [=](Attempt& a) { erase(a, at_three); },
           .rank = 0,
           .mentions = {"`replay` line of arm lockstep_graph at step 3"},
           .also = {"D43.replays"}},
      });
}

TEST(Coverage, TheFirstStageCountsTheLayersOfItsVisionEncoderToo) {
  const nlohmann::json axes = {
      {"impl", "local"}, {"model", "vlm"}, {"pp", 2}, {"microbatches", 4}, {"encoder_layers", 3}};
  ASSERT_EQ(judge_one("D18.coverage", axes, [](Attempt&) {}).result, record::Result::pass);
  for (const auto& [rank, layers] : {std::pair{0, 4}, {1, 1}}) {
    const record::CheckResult result = judge_one("D18.coverage", axes, [&](Attempt& a) {
      set(a, {.rank = rank, .kind = "replay", .arm = "lockstep_graph", .step = 3}, "counter_after",
          Counters(2, 16));
    });
    EXPECT_EQ(result.result, record::Result::fail);
    EXPECT_NE(record::to_text(result.message)
                  .find("a count for each of " + std::to_string(layers) + " layers"),
              std::string::npos)
        << record::to_text(result.message);
  }
}

TEST(Coverage, TheLastStageCountsTheLayersOfMultiTokenPredictionToo) {
  const nlohmann::json axes = {
      {"impl", "local"}, {"pp", 2}, {"microbatches", 4}, {"mtp_num_layers", 2}};
  ASSERT_EQ(judge_one("D18.coverage", axes, [](Attempt&) {}).result, record::Result::pass);
  for (const auto& [rank, layers] : {std::pair{0, 1}, {1, 3}}) {
    const record::CheckResult result = judge_one("D18.coverage", axes, [&](Attempt& a) {
      set(a, {.rank = rank, .kind = "replay", .arm = "lockstep_graph", .step = 3}, "counter_after",
          Counters(2, 16));
    });
    EXPECT_EQ(result.result, record::Result::fail);
    EXPECT_NE(record::to_text(result.message)
                  .find("a count for each of " + std::to_string(layers) + " layers"),
              std::string::npos)
        << record::to_text(result.message);
  }
}

}  // namespace
}  // namespace graphproof::checks
