#include <gtest/gtest.h>

#include "suites/checks/testing/check_rows.h"

namespace graphproof::checks {
namespace {

const nlohmann::json kRecomputeAxes = {{"impl", "manual"},
                                       {"recompute", "selective(core_attn)"},
                                       {"dropout", true},
                                       {"microbatches", 2}};

TEST(Recompute, Rows) {
  const Where at_three{.rank = 0, .kind = "recompute", .arm = "lockstep_graph", .step = 3};
  judge_rows(
      "D42.recompute", kRecomputeAxes,
      {
          {.name = "a fresh mask (M34)",
           .change =
               [=](Attempt& a) { set(a, at_three, "masks_again_digest", "1111111111111111"); },
           .rank = 0,
           .mentions =
               {"recompute had other masks than the forward in step 3 of arm lockstep_graph",
                "1111111111111111"}},
          {.name = "other outputs",
           .change = [=](Attempt& a) { set(a, at_three, "outputs_again", "1111111111111111"); },
           .rank = 0,
           .mentions = {"recompute had other outputs", "the loss looks right"}},
          {.name = "no digest at all",
           .change =
               [=](Attempt& a) {
                 set(a, at_three, "outputs", "");
                 set(a, at_three, "outputs_again", "");
               },
           .rank = 0,
           .mentions = {"digest none"}},
          {.name = "a replay without recompute",
           .change = [=](Attempt& a) { set(a, at_three, "counter_after", std::vector<int>{6, 6}); },
           .rank = 0,
           .mentions =
               {"core_attn of layer 0 was not recomputed once for each microbatch in step 3",
                "got 0 times", "want 2, once for each"}},
          {.name = "no counters",
           .change = [=](Attempt& a) { set(a, at_three, "counter_before", std::vector<int>{}); },
           .rank = 0,
           .mentions = {"recompute counters of step 3"}},
          {.name = "absent",
           .change = [=](Attempt& a) { erase(a, at_three); },
           .rank = 0,
           .mentions = {"`recompute` line of core_attn of arm lockstep_graph at step 3"}},
      });
}

TEST(Recompute, WantsALineOfEveryPart) {
  const nlohmann::json axes = {{"impl", "manual"},
                               {"recompute", "selective(mlp,layernorm)"},
                               {"dropout", true},
                               {"microbatches", 2}};
  EXPECT_EQ(record::name(judge_one("D42.recompute", axes, [](Attempt&) {}).result), "pass");
  const auto result = judge_one("D42.recompute", axes, [](Attempt& a) {
    for (Line& line : a.ranks[0].evidence->lines)
      if (text(line, "part") == "mlp_norm") line.fields["part"] = "moe";
  });
  EXPECT_EQ(record::name(result.result), "fail");
  EXPECT_NE(record::to_text(result.message).find("`recompute` line of mlp_norm"),
            std::string::npos);
}

TEST(Recompute, OfABlockIsThatOfItsLayersAlone) {
  const nlohmann::json axes = {
      {"impl", "manual"}, {"recompute", "full(block,1)"}, {"layers", 3}, {"dropout", true}};
  EXPECT_EQ(record::name(judge_one("D42.recompute", axes, [](Attempt&) {}).result), "pass");
  const Where at_three{.rank = 0, .kind = "recompute", .arm = "lockstep_graph", .step = 3};
  const auto result = judge_one("D42.recompute", axes, [&](Attempt& a) {
    set(a, at_three, "counter_before", std::vector<int>{3, 3, 3});
    set(a, at_three, "counter_after", std::vector<int>{4, 4, 4});
  });
  EXPECT_NE(record::to_text(result.message).find("recompute counters of step 3"), std::string::npos)
      << "more layers than the case names";
}

TEST(Recompute, OfABlockCountsInEveryChunkOfAStage) {
  const nlohmann::json axes = {{"impl", "manual"}, {"recompute", "full(block,1)"},
                               {"layers", 8},      {"pp", 2},
                               {"vpp", 2},         {"microbatches", 2}};
  EXPECT_EQ(record::name(judge_one("D42.recompute", axes, [](Attempt&) {}).result), "pass");
  const auto result = judge_one("D42.recompute", axes, [&](Attempt& a) {
    set(a, {.rank = 1, .kind = "recompute", .arm = "lockstep_graph", .step = 3}, "counter_before",
        std::vector<int>{3});
  });
  EXPECT_NE(record::to_text(result.message).find("recompute counters of step 3"), std::string::npos)
      << "the second chunk's layer is not counted";
}

TEST(Recompute, CountsThePredictionLayersOfTheLastStageUnlessLayersAreRecomputedOneByOne) {
  for (const auto& [recompute, of_last] :
       {std::pair{"selective(mla_up_proj)", 2}, {"full(uniform,1)", 2}, {"full(block,1)", 1}}) {
    const nlohmann::json axes = {
        {"impl", "manual"},  {"recompute", recompute},         {"pp", 2},
        {"microbatches", 2}, {"multi_latent_attention", true}, {"mtp_num_layers", 1}};
    EXPECT_EQ(record::name(judge_one("D42.recompute", axes, [](Attempt&) {}).result), "pass");
    for (const auto& [rank, layers] : {std::pair{0, 1}, {1, of_last}})
      for (const int counted : {1, 2}) {
        const auto result = judge_one("D42.recompute", axes, [&](Attempt& a) {
          const Where line{.rank = rank, .kind = "recompute", .arm = "lockstep_graph", .step = 3};
          set(a, line, "counter_before", std::vector<int>(static_cast<std::size_t>(counted), 6));
          set(a, line, "counter_after", std::vector<int>(static_cast<std::size_t>(counted), 8));
        });
        EXPECT_EQ(record::name(result.result), counted == layers ? "pass" : "fail")
            << recompute << ", rank " << rank << ": " << record::to_text(result.message);
      }
  }
}

TEST(Recompute, OfEarlierEvidenceIsThatOfCoreAttention) {
  const auto without_part = [](Attempt& a) {
    for (Line& line : a.ranks[0].evidence->lines) line.fields.erase("part");
  };
  EXPECT_EQ(record::name(judge_one("D42.recompute", kRecomputeAxes, without_part).result), "pass");
}

TEST(Recompute, WithoutDropoutNeedsNoMasks) {
  nlohmann::json axes = kRecomputeAxes;
  axes["dropout"] = false;
  EXPECT_EQ(record::name(judge_one("D42.recompute", axes, [](Attempt&) {}).result), "pass");
}

TEST(Recompute, IsNotApplicableToACaseWithoutIt) {
  EXPECT_EQ(record::name(judge_one("D42.recompute", {{"impl", "manual"}}, [](Attempt&) {}).result),
            "not_applicable");
}

}  // namespace
}  // namespace graphproof::checks
