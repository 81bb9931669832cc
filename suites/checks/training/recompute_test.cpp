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

constexpr const char* kCaptured = "D42.recompute_captured";

nlohmann::json axes_of(const char* subject, const char* impl) {
  return {{"subject", subject},
          {"impl", impl},
          {"microbatches", 2},
          {"recompute", "full(uniform,1)"},
          {"optimizer_kernels", "fused"}};
}

Where arm(const char* name) { return {.rank = 0, .kind = "recomputes", .arm = name}; }

/// A row in which one arm has other numbers.
Row row(std::string name, const char* of_arm, std::vector<std::pair<std::string, int>> numbers,
        std::vector<std::string> mentions) {
  return {.name = std::move(name),
          .change =
              [=](Attempt& a) {
                for (const auto& [field, number] : numbers) set(a, arm(of_arm), field, number);
              },
          .rank = 0,
          .mentions = std::move(mentions)};
}

/// The other arms of the attempt run no part under a checkpoint either.
void without_checkpoints(Attempt& attempt) {
  for (const char* name :
       {"eager_a", "solo_eager", "lockstep_eager", "lockstep_graph", "free_graph", "solo_graph"})
    for (const char* field : {"parts", "parts_again", "captured", "captured_again"})
      set(attempt, arm(name), field, 0);
}

TEST(RecomputeCaptured, Rows) {
  // Two layers and two microbatches: four parts in a step.
  judge_rows(kCaptured, axes_of("torch", "manual"),
             {
                 row("a graph without recompute (M428)", "free_graph", {{"captured_again", 0}},
                     {"the graphs of arm free_graph did not recompute every part that ran under a "
                      "checkpoint",
                      "0 of 4 parts run again", "nothing else tells"}),
                 row("a graph with half of it", "solo_graph", {{"captured_again", 2}},
                     {"the graphs of arm solo_graph", "2 of 4 parts"}),
                 row("eager steps without recompute", "lockstep_eager", {{"parts_again", 0}},
                     {"the eager work of arm lockstep_eager did not recompute", "0 of 24 parts"}),
                 row("the warm-up of a graph arm without recompute", "lockstep_graph",
                     {{"parts_again", 0}}, {"the eager work of arm lockstep_graph"}),
                 row("a graph with fewer parts under a checkpoint than an eager step", "free_graph",
                     {{"captured", 2}, {"captured_again", 2}},
                     {"arm free_graph ran other parts under a checkpoint than eager steps do",
                      "2 parts in captures, and 8 in 2 eager steps",
                      "those of arm eager_a: 20 parts in 5 steps"}),
                 row("a graph without any", "lockstep_graph",
                     {{"captured", 0}, {"captured_again", 0}}, {"0 parts in captures"}),
                 row("a warm-up with fewer parts under a checkpoint", "solo_graph",
                     {{"parts", 6}, {"parts_again", 6}}, {"6 in 2 eager steps"}),
                 {.name = "no line of an arm",
                  .change = [](Attempt& a) { erase(a, arm("solo_graph")); },
                  .rank = 0,
                  .mentions = {"`recomputes` line of arm solo_graph"}},
                 {.name = "nothing ran under a checkpoint",
                  .change = without_checkpoints,
                  .want = record::Result::unexercised,
                  .mentions = {"rank 0 ran no part under a checkpoint in its eager steps",
                               "ask for parts that this model has"}},
                 rank_died(arm("eager_a")),
             });
}

TEST(RecomputeCaptured, OfLayersMayLieInGraphsAndOutsideOfThem) {
  nlohmann::json axes = axes_of("megatron_core", "transformer_engine");
  axes["recompute"] = "selective(core_attn)";
  judge_rows(kCaptured, axes,
             {
                 row("graphs that hold attention once", "free_graph", {{"captured_again", 0}},
                     {"the graphs of arm free_graph did not recompute every part"}),
                 {.name = "attention outside of the graphs",
                  .change =
                      [](Attempt& a) {
                        for (const char* field : {"captured", "captured_again"})
                          set(a, arm("free_graph"), field, 0);
                      },
                  .want = record::Result::pass},
                 row("an arm without any part under a checkpoint", "free_graph",
                     {{"parts", 0}, {"parts_again", 0}, {"captured", 0}, {"captured_again", 0}},
                     {"arm free_graph ran other parts under a checkpoint", "0 parts in captures"}),
                 row("a warm-up with fewer parts under a checkpoint", "solo_graph",
                     {{"parts", 6}, {"parts_again", 6}}, {"6 in 2 eager steps"}),
                 {.name = "parts that replayed steps run outside of the graphs",
                  .change =
                      [](Attempt& a) {
                        for (const char* field : {"parts", "parts_again"})
                          set(a, arm("solo_graph"), field, 30);
                      },
                  .want = record::Result::pass},
             });
}

TEST(RecomputeCaptured, OfAnEagerCaseIsThatOfItsEagerArms) {
  judge_rows(kCaptured, axes_of("megatron_core", "none"),
             {row("eager steps without recompute", "solo_eager", {{"parts_again", 0}},
                  {"the eager work of arm solo_eager"})});
}

TEST(RecomputeCaptured, IsAskedOfSubjectsThatCountAndOfEvidenceThatHasTheLine) {
  const auto word = [](const nlohmann::json& axes) {
    return std::string(record::name(judge_one(kCaptured, axes, [](Attempt&) {}).result));
  };
  nlohmann::json none = axes_of("torch", "manual");
  none["recompute"] = "none";
  EXPECT_EQ(word(none), "not_applicable");
  EXPECT_EQ(word(axes_of("reference", "manual")), "not_applicable");
  judge_rows(kCaptured, axes_of("torch", "manual"),
             {row("a graph without recompute", "free_graph", {{"captured_again", 0}}, {})}, "sim",
             record::RecomputesLine::kSince);
}

}  // namespace
}  // namespace graphproof::checks
