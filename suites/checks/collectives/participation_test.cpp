#include <gtest/gtest.h>

#include "suites/checks/testing/check_rows.h"

namespace graphproof::checks {
namespace {

TEST(Participation, Rows) {
  const Where third{.rank = 1, .kind = "replay", .arm = "lockstep_graph", .step = 3};
  judge_rows("D26.participation", kTwoRanks,
             {
                 {.name = "one rank falls back (M56)",
                  .change = [=](Attempt& a) { set(a, third, "fallbacks", 1); },
                  .rank = 1,
                  .mentions = {"ranks 0 and 1 launched different numbers of graphs in step 3 of "
                               "arm lockstep_graph",
                               "1 fallbacks", "as rank 0"},
                  .also = {"D43.replays"}},
                 {.name = "one rank launches less",
                  .change = [=](Attempt& a) { set(a, third, "replays", 1); },
                  .rank = 1,
                  .mentions = {"1 launches", "2 launches"},
                  .also = {"D43.replays"}},
                 {.name = "both ranks wrong in the same way, which D43 notices",
                  .change =
                      [](Attempt& a) {
                        set(a, {.kind = "replay", .arm = "lockstep_graph", .step = 3}, "replays",
                            7);
                      },
                  .want = record::Result::pass,
                  .rank = std::nullopt,
                  .mentions = {},
                  .also = {"D43.replays"}},
                 {.name = "launches of an arm that another rank does not make",
                  .change =
                      [](Attempt& a) {
                        for (const int rank : {0, 1})
                          add(a, rank,
                              record::line_json(record::ReplayLine{.arm = "extra",
                                                                   .graph = "training",
                                                                   .step = 9,
                                                                   .replays = rank,
                                                                   .out_of_order = 0}));
                      },
                  .rank = 1,
                  .mentions = {"1 launches", "0 launches"}},
                 rank_died({.rank = 1, .kind = "replay"}),
             });
}

TEST(Participation, OfAVisionEncoderHoldsWithinEachStage) {
  const nlohmann::json axes = {
      {"impl", "local"}, {"model", "vlm"}, {"pp", 2}, {"dp", 2}, {"microbatches", 4}};
  EXPECT_EQ(judge_one("D26.participation", axes, [](Attempt&) {}).result, record::Result::pass);
  for (const int rank : {1, 3}) {
    const record::CheckResult result = judge_one("D26.participation", axes, [&](Attempt& a) {
      set(a, {.rank = rank, .kind = "replay", .arm = "lockstep_graph", .step = 3}, "replays", 1);
    });
    EXPECT_EQ(result.result, record::Result::fail);
    EXPECT_EQ(result.rank, rank);
  }
}

}  // namespace
}  // namespace graphproof::checks
