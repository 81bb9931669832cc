#include <gtest/gtest.h>

#include "suites/checks/attempt/expected.h"
#include "suites/checks/testing/check_rows.h"

namespace graphproof::checks {
namespace {

const nlohmann::json kOffloadAxes = {
    {"impl", "full_iteration"}, {"microbatches", 2}, {"layers", 2}, {"cpu_offload", true}};

TEST(ActivationOffload, Rows) {
  const Where replayed{.rank = 0, .kind = "offload", .arm = "lockstep_graph", .step = 3},
      eager{.rank = 0, .kind = "offload", .arm = "eager_a", .step = 1};
  judge_rows(
      "D85.activation_offload", kOffloadAxes,
      {
          {.name = "nothing was offloaded (M399)",
           .change =
               [=](Attempt& a) {
                 for (const char* count : {"buffers", "pinned", "written", "fetched"})
                   set(a, eager, count, 0);
               },
           .rank = 0,
           .mentions = {"step 1 of arm eager_a has another number of host buffers than inputs of "
                        "linear layers",
                        "got 0", "want 9, of 9 inputs of linear layers and 2 microbatches",
                        "activations stay in device memory"}},
          {.name = "in pageable memory",
           .change = [=](Attempt& a) { set(a, replayed, "pinned", 8); },
           .rank = 0,
           .mentions = {"step 3 of arm lockstep_graph has host buffers in pageable memory", "got 8",
                        "want 9"}},
          {.name = "a graph without the copies to the host",
           .change = [=](Attempt& a) { set(a, replayed, "written", 0); },
           .rank = 0,
           .mentions = {"step 3 of arm lockstep_graph did not write every host buffer", "got 0"}},
          {.name = "a graph without the copies back",
           .change = [=](Attempt& a) { set(a, replayed, "fetched", 9); },
           .rank = 0,
           .mentions = {"did not copy every activation back once for each microbatch", "got 9",
                        "want 18"}},
          {.name = "absent of a replay",
           .change = [=](Attempt& a) { erase(a, replayed); },
           .rank = 0,
           .mentions = {"`offload` line of arm lockstep_graph at step 3"}},
          {.name = "absent of an eager step",
           .change = [=](Attempt& a) { erase(a, eager); },
           .rank = 0,
           .mentions = {"`offload` line of arm eager_a at step 1"}},
      });
  judge_rows("D85.activation_offload", {{"cpu_offload", true}},
             {{.name = "of a case without graphs",
               .change = [=](Attempt& a) { set(a, eager, "written", 7); },
               .rank = 0,
               .mentions = {"step 1 of arm eager_a did not write every host buffer"}}});
}

TEST(ActivationOffload, KnowsTheLinearLayersOfAStage) {
  struct OfStage {
    nlohmann::json axes;
    std::int64_t stage, weights, uses;
  };
  for (const OfStage& row :
       std::vector<OfStage>{{{{"layers", 2}}, 0, 9, 9},
                            {{{"layers", 2}, {"model", "hybrid"}}, 0, 7, 7},
                            {{{"layers", 2}, {"mtp_num_layers", 1}}, 0, 14, 15},
                            {{{"layers", 2}, {"pp", 2}}, 0, 4, 4},
                            {{{"layers", 2}, {"pp", 2}}, 1, 5, 5},
                            {{{"multi_latent_attention", true}}, 0, 15, 15}})
    judge_one("D28.effective_config", row.axes, [&](Attempt& attempt) {
      const LinearLayers layers = linear_layers(attempt.axes, row.stage);
      EXPECT_EQ(layers.weights, row.weights) << row.axes.dump();
      EXPECT_EQ(layers.uses, row.uses) << row.axes.dump();
    });
}

TEST(ActivationOffload, AnOutputLayerThatSharesTheEmbeddingStaysOnTheDevice) {
  const nlohmann::json axes = {{"tied_embeddings", true}, {"mtp_num_layers", 1}, {"layers", 2}};
  judge_one("D28.effective_config", axes,
            [](Attempt& attempt) { EXPECT_EQ(offloaded_activations(attempt.axes), 13); });
}

TEST(ActivationOffload, IsNotApplicableWithoutIt) {
  EXPECT_EQ(record::name(
                judge_one("D85.activation_offload", {{"impl", "manual"}}, [](Attempt&) {}).result),
            "not_applicable");
}

}  // namespace
}  // namespace graphproof::checks
