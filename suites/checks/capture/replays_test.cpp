#include <gtest/gtest.h>

#include "suites/checks/testing/check_rows.h"

namespace graphproof::checks {
namespace {

TEST(Replays, Rows) {
  const auto at = [](const char* arm, std::int64_t step) {
    return Where{.rank = 0, .kind = "replay", .arm = arm, .step = step};
  };
  judge_rows("D43.replays", {{"impl", "full_iteration"}},
             {
                 {.name = "none although the numbers agree (M85)",
                  .change = [](Attempt& a) { set(a, {.rank = 0, .kind = "replay"}, "replays", 0); },
                  .rank = 0,
                  .mentions = {"arm lockstep_graph did not replay every step up to step 2",
                               "0 replays, 0 fallbacks", "1 replays after 2 warm-up steps"}},
                 {.name = "one step fell back",
                  .change =
                      [=](Attempt& a) {
                        set(a, at("lockstep_graph", 4), "replays", 2);
                        set(a, at("lockstep_graph", 4), "fallbacks", 1);
                      },
                  .rank = 0,
                  .mentions = {"2 replays, 1 fallbacks", "3 replays"}},
                 {.name = "a fallback in addition to the full count",
                  .change = [=](Attempt& a) { set(a, at("lockstep_graph", 4), "fallbacks", 1); },
                  .rank = 0,
                  .mentions = {"1 fallbacks"}},
                 {.name = "captured again",
                  .change = [=](Attempt& a) { set(a, at("solo_graph", 11), "recaptures", 1); },
                  .rank = 0,
                  .mentions = {"arm solo_graph", "1 recaptures"}},
                 {.name = "the free run replayed too little",
                  .change = [=](Attempt& a) { set(a, at("free_graph", 4), "replays", 2); },
                  .rank = 0,
                  .mentions = {"arm free_graph", "2 replays"}},
                 {.name = "replayed too often",
                  .change = [=](Attempt& a) { set(a, at("free_graph", 4), "replays", 4); },
                  .rank = 0,
                  .mentions = {"4 replays"}},
                 {.name = "the free run's count is absent",
                  .change = [=](Attempt& a) { erase(a, at("free_graph", 4)); },
                  .rank = 0,
                  .mentions = {"`replay` line of arm free_graph at step 4"},
                  .also = {"D18.coverage", "D35.pool_order"}},
                 {.name = "the free run counted too early",
                  .change =
                      [=](Attempt& a) {
                        set(a, at("free_graph", 4), "replays", 2);
                        set(a, at("free_graph", 4), "counter_after", {4, 4});
                        set(a, at("free_graph", 4), "step", 3);
                      },
                  .rank = 0,
                  .mentions = {"`replay` line of arm free_graph at step 4"}},
                 {.name = "the capture inputs were not replayed",
                  .change = [=](Attempt& a) { erase(a, at("lockstep_graph", 5)); },
                  .rank = 0,
                  .mentions = {"at step 5"},
                  .also = {"D18.coverage"}},
                 {.name = "the rank died",
                  .change = [=](Attempt& a) { die_before(a, at("lockstep_graph", 3)); },
                  .want = record::Result::unexercised,
                  .rank = std::nullopt,
                  .mentions = {"rank 0"},
                  .also = {"*"}},
             });
}

TEST(Replays, RowsOfTheCompilerWhoseGraphsNobodyCanCountAhead) {
  const auto at = [](const char* arm, std::int64_t step) {
    return Where{.rank = 0, .kind = "replay", .arm = arm, .step = step};
  };
  judge_rows("D43.replays", {{"subject", "torch_compile"}, {"impl", "callables"}},
             {
                 {.name = "a step fell back to eager",
                  .change = [=](Attempt& a) { set(a, at("lockstep_graph", 3), "replays", 4); },
                  .rank = 0,
                  .mentions = {"up to step 3", "4 replays", "8 replays"}},
                 {.name = "the first step launched less than was captured",
                  .change =
                      [=](Attempt& a) {
                        for (const std::int64_t step : {2, 3, 4, 5})
                          set(a, at("lockstep_graph", step), "replays", 0);
                      },
                  .rank = 0,
                  .mentions = {"up to step 2", "0 replays", "want 1 replays"}},
                 {.name = "the free run launched less than lockstep",
                  .change = [=](Attempt& a) { set(a, at("free_graph", 4), "replays", 3); },
                  .rank = 0,
                  .mentions = {"arm free_graph", "3 replays", "12 replays"}},
                 {.name = "captured again",
                  .change = [=](Attempt& a) { set(a, at("solo_graph", 11), "recaptures", 1); },
                  .rank = 0,
                  .mentions = {"arm solo_graph", "1 recaptures"}},
             });
}

TEST(Replays, OnlyTheFirstStageLaunchesTheGraphsOfAVisionEncoder) {
  struct Row {
    bool frozen;
    int rank, launches;  // in a step
    const char* captured = "both";
  };
  // Four microbatches, one layer of the decoder on each stage, three layers of the encoder.
  for (const Row& row :
       {Row{false, 0, 4 * (2 + 2 * 3)}, Row{true, 0, 4 * (2 + 3)}, Row{false, 1, 4 * 2},
        Row{true, 1, 4 * 2}, Row{false, 0, 4 * 2, "decoder"}, Row{false, 1, 4 * 2, "decoder"},
        Row{false, 0, 4 * 2 * 3, "encoder"}, Row{true, 0, 4 * 3, "encoder"}}) {
    const nlohmann::json axes = {{"impl", "transformer_engine"},
                                 {"model", "vlm"},
                                 {"pp", 2},
                                 {"microbatches", 4},
                                 {"encoder_layers", 3},
                                 {"captured_models", row.captured},
                                 {"freeze_vision_model", row.frozen}};
    ASSERT_EQ(judge_one("D43.replays", axes, [](Attempt&) {}).result, record::Result::pass);
    for (const int more : {0, 1}) {
      const record::CheckResult result = judge_one("D43.replays", axes, [&](Attempt& a) {
        set(a, {.rank = row.rank, .kind = "replay", .arm = "lockstep_graph", .step = 3}, "replays",
            2 * row.launches + more);
      });
      EXPECT_EQ(result.result, more == 0 ? record::Result::pass : record::Result::fail)
          << "rank " << row.rank << ": " << record::to_text(result.message);
    }
  }
}

TEST(Replays, OnlyTheLastStageLaunchesTheGraphsOfPredictionLayers) {
  struct Row {
    int rank, launches;  // in a step
  };
  // Four microbatches, one layer of the decoder on each stage, two that predict.
  for (const Row& row : {Row{0, 4 * 2}, Row{1, 4 * 2}, Row{2, 4 * (2 + 2 * 2)}}) {
    const nlohmann::json axes = {
        {"impl", "transformer_engine"}, {"pp", 3},           {"layers", 3},
        {"modules", {"attn"}},          {"microbatches", 4}, {"mtp_num_layers", 2}};
    ASSERT_EQ(judge_one("D43.replays", axes, [](Attempt&) {}).result, record::Result::pass);
    for (const int more : {0, 1}) {
      const record::CheckResult result = judge_one("D43.replays", axes, [&](Attempt& a) {
        set(a, {.rank = row.rank, .kind = "replay", .arm = "lockstep_graph", .step = 3}, "replays",
            2 * row.launches + more);
      });
      EXPECT_EQ(result.result, more == 0 ? record::Result::pass : record::Result::fail)
          << "rank " << row.rank << ": " << record::to_text(result.message);
    }
  }
}

}  // namespace
}  // namespace graphproof::checks
