#include <gtest/gtest.h>

#include "suites/checks/attempt/expected.h"
#include "suites/checks/testing/check_rows.h"

namespace graphproof::checks {
namespace {

const nlohmann::json kRoundedAxes = {{"impl", "local"},
                                     {"microbatches", 2},
                                     {"layers", 3},
                                     {"fp8_weights", true},
                                     {"first_last_layers_bf16", true}};

TEST(Fp8Weights, Rows) {
  const Where at_three{.rank = 0, .kind = "fp8_weights", .arm = "lockstep_graph", .step = 3};
  judge_rows(
      "D39.fp8_weights", kRoundedAxes,
      {
          {.name = "copies in every microbatch (M80)",
           .change = [=](Attempt& a) { set(a, at_three, "copies", std::vector<int>{0, 8, 0}); },
           .rank = 0,
           .mentions =
               {"layer 1 of this rank made another number of rounded copies in step 3 of arm "
                "lockstep_graph",
                "got 8 copies", "want 4, one of each weight in the first microbatch",
                "a rounding that changes nothing"}},
          {.name = "none (M160)",
           .change = [=](Attempt& a) { set(a, at_three, "copies", std::vector<int>{0, 0, 0}); },
           .rank = 0,
           .mentions = {"layer 1", "got 0 copies", "copies of older weights"}},
          {.name = "a layer whose weights are not rounded (M161)",
           .change = [=](Attempt& a) { set(a, at_three, "copies", std::vector<int>{0, 4, 4}); },
           .rank = 0,
           .mentions = {"layer 2", "got 4 copies", "want 0: its weights are not rounded",
                        "another layer's context"}},
          {.name = "other layers than the case has",
           .change = [=](Attempt& a) { set(a, at_three, "copies", std::vector<int>{0, 4}); },
           .rank = 0,
           .mentions = {"`fp8_weights` line of 3 layers of arm lockstep_graph"}},
          {.name = "absent",
           .change = [=](Attempt& a) { erase(a, at_three); },
           .rank = 0,
           .mentions = {"`fp8_weights` line of 3 layers of arm lockstep_graph at step 3"}},
      });
}

TEST(Fp8Weights, KnowsTheLayersOfEachStageAndWhatTheyAreMadeOf) {
  struct Row {
    nlohmann::json axes;
    std::int64_t stage;
    std::vector<std::int64_t> weights;
  };
  const std::vector<Row> rows = {
      {{{"layers", 2}}, 0, {4, 4}},
      {{{"layers", 8}, {"pp", 2}, {"vpp", 2}, {"first_last_layers_bf16", true}}, 0, {0, 4, 4, 4}},
      {{{"layers", 8}, {"pp", 2}, {"vpp", 2}, {"first_last_layers_bf16", true}}, 1, {4, 4, 4, 0}},
      {{{"layers", 2}, {"model", "hybrid"}}, 0, {2, 4}},
      {{{"layers", 2}, {"multi_latent_attention", true}}, 0, {7, 7}},
      {{{"layers", 2}, {"pp", 2}, {"mtp_num_layers", 1}}, 0, {4}},
      {{{"layers", 2}, {"pp", 2}, {"mtp_num_layers", 1}, {"first_last_layers_bf16", true}},
       1,
       {0, 4}},
      {{{"layers", 2}, {"model", "hybrid"}, {"experts", 4}, {"topk", 2}}, 0, {2, 4}},
      {{{"layers", 2}, {"pp", 2}, {"model", "vlm"}}, 0, {4, 4, 4}},
      {{{"layers", 2}, {"pp", 2}, {"model", "vlm"}}, 1, {4}},
      {{{"layers", 3}, {"model", "vlm"}, {"encoder_layers", 3}, {"first_last_layers_bf16", true}},
       0,
       {0, 4, 0, 0, 4, 0}},
      {{{"layers", 2}, {"model", "moe"}, {"experts", 4}, {"topk", 2}, {"shared_expert", true}},
       0,
       {6, 6}},
  };
  for (const Row& row : rows) {
    nlohmann::json axes = row.axes;
    axes["fp8_weights"] = true;
    judge_one("D39.fp8_weights", axes, [&](Attempt& attempt) {
      EXPECT_EQ(rounded_weights(attempt.axes, row.stage), row.weights)
          << axes.dump() << " stage " << row.stage;
    });
  }
}

TEST(Fp8Weights, OfStagesAreThoseOfEachStagesOwnLayers) {
  const nlohmann::json axes = {{"impl", "transformer_engine"},
                               {"pp", 2},
                               {"layers", 4},
                               {"microbatches", 2},
                               {"fp8_weights", true},
                               {"first_last_layers_bf16", true}};
  EXPECT_EQ(record::name(judge_one("D39.fp8_weights", axes, [](Attempt&) {}).result), "pass");
  const auto result = judge_one("D39.fp8_weights", axes, [](Attempt& a) {
    set(a, {.rank = 1, .kind = "fp8_weights", .arm = "lockstep_graph", .step = 3}, "copies",
        std::vector<int>{0, 4});
  });
  EXPECT_EQ(record::name(result.result), "fail")
      << "the first layer of a stage is not that of the model";
  EXPECT_EQ(record::name(judge_one("D39.fp8_weights", {{"impl", "local"}}, [](Attempt&) {}).result),
            "not_applicable");
}

}  // namespace
}  // namespace graphproof::checks
