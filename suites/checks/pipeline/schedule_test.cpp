#include <gtest/gtest.h>

#include "suites/checks/testing/check_rows.h"

namespace graphproof::checks {
namespace {

const nlohmann::json kScheduleAxes = {{"impl", "manual"}, {"pp", 2}, {"microbatches", 3}};

// The clean schedules: stage 0 runs 1 2 -1 3 -2 -3, stage 1 runs 1 -1 2 -2 3 -3.
TEST(Schedule, Rows) {
  const Where at_three{.rank = 1, .kind = "schedule", .arm = "lockstep_graph", .step = 3};
  judge_rows(
      "D41.schedule", kScheduleAxes,
      {
          {.name = "two microbatches in the wrong order (M76)",
           .change =
               [=](Attempt& a) { set(a, at_three, "ran", std::vector<int>{2, -2, 1, -1, 3, -3}); },
           .rank = 1,
           .mentions =
               {"stage 1 did not follow its schedule at entry 0 of step 3 of arm lockstep_graph",
                "got the forward of microbatch 1, chunk 0; want the forward of microbatch 0, "
                "chunk 0",
                "combined with another one"}},
          {.name = "a microbatch without its backward",
           .change =
               [=](Attempt& a) { set(a, at_three, "ran", std::vector<int>{1, -1, 2, -2, 3, 0}); },
           .rank = 1,
           .mentions = {"at entry 5", "got nothing; want the backward of microbatch 2, chunk 0"}},
          {.name = "one stage's schedule on another",
           .change =
               [=](Attempt& a) { set(a, at_three, "ran", std::vector<int>{1, 2, -1, 3, -2, -3}); },
           .rank = 1,
           .mentions =
               {"at entry 1",
                "got the forward of microbatch 1, chunk 0; want the backward of microbatch 0"}},
          {.name = "absent",
           .change = [=](Attempt& a) { erase(a, at_three); },
           .rank = 1,
           .mentions = {"`schedule` line of arm lockstep_graph at step 3"}},
      });
}

TEST(Schedule, OfSeveralChunksIsInterleaved) {
  const nlohmann::json axes = {
      {"impl", "none"}, {"pp", 2}, {"vpp", 2}, {"layers", 4}, {"microbatches", 2}};
  EXPECT_EQ(record::name(judge_one("D41.schedule", axes, [](Attempt&) {}).result), "pass");
  const auto swapped = judge_one("D41.schedule", axes, [](Attempt& a) {
    set(a, {.rank = 0, .kind = "schedule", .arm = "eager_a", .step = 0}, "ran",
        std::vector<int>{1, 3, 2, 4, -3, -4, -1, -2});
  });
  EXPECT_EQ(record::name(swapped.result), "fail");
  EXPECT_NE(record::to_text(swapped.message)
                .find("got the forward of microbatch 0, chunk 1; want the forward of microbatch 1, "
                      "chunk 0"),
            std::string::npos)
      << record::to_text(swapped.message);
}

const nlohmann::json kLayerAxes = {{"impl", "transformer_engine"},
                                   {"modules", {"attn"}},
                                   {"dp", 2},
                                   {"ep", 2},
                                   {"microbatches", 2},
                                   {"precision", "bf16"},
                                   {"model", "moe"},
                                   {"experts", 4},
                                   {"topk", 2},
                                   {"dispatch", "dropless"},
                                   {"dispatcher", "alltoall"},
                                   {"overlap_ep_comm", true},
                                   {"delay_wgrad", true}};

// Two layers: 1 5, then 2 -5 -7 6 -1 -3, then -6 -8 -2 -4.
TEST(Schedule, OfLayersHasEachOnesDelayedWeightGradientsBehindItsBackward) {
  EXPECT_EQ(record::name(judge_one("D41.schedule", kLayerAxes, [](Attempt&) {}).result), "pass");
  judge_rows(
      "D41.schedule", kLayerAxes,
      {
          {.name = "weight gradients before their backward",
           .change =
               [](Attempt& a) {
                 set(a, {.rank = 0, .kind = "schedule", .arm = "lockstep_graph", .step = 3}, "ran",
                     std::vector<int>{1, 5, 2, -7, -5, 6, -1, -3, -6, -8, -2, -4});
               },
           .rank = 0,
           .mentions = {"stage 0 did not follow its schedule at entry 3 of step 3",
                        "got the delayed weight gradients of microbatch 0, layer 1",
                        "want the backward of microbatch 0, layer 1", "in the captured order"}},
          {.name = "chunk by chunk, as without the overlap",
           .change =
               [](Attempt& a) {
                 set(a, {.rank = 1, .kind = "schedule", .arm = "lockstep_graph", .step = 3}, "ran",
                     std::vector<int>{1, -1, 2, -2});
               },
           .rank = 1,
           .mentions = {"at entry 1",
                        "got the backward of microbatch 0, layer 0; want the forward of "
                        "microbatch 0, layer 1"}},
      });
}

TEST(Schedule, IsNotApplicableWithoutStages) {
  EXPECT_EQ(record::name(judge_one("D41.schedule", {{"impl", "manual"}}, [](Attempt&) {}).result),
            "not_applicable");
}

}  // namespace
}  // namespace graphproof::checks
