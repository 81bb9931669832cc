// Latent attention and multi-token prediction over tensor, sequence, context and data parallel
// ranks and pipeline stages. Started by mpirun with several ranks; each test runs on every layout
// that fits.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "workloads/testing/ranks_under_test.h"
#include "workloads/testing/spread.h"
#include "workloads/testing/step_after_backward.h"
#include "workloads/testing/twin_steps.h"

namespace graphproof::engines::latents_and_predictions_layouts_test {
namespace {

using fixtures::Fault;
using workloads::Layout;
using workloads::ModelConfig;
using workloads::on_host;

/// With eight chunks of two tokens for four context parallel ranks.
ModelConfig model(bool latents, std::int64_t predictions) {
  return {.hidden = 32,
          .ffn = 64,
          .vocab = 32,
          .seq_length = 16,
          .microbatches = 2,
          .multi_latent_attention = latents,
          .mtp_num_layers = predictions};
}

/// The model with a layer in each chunk of the layout.
ModelConfig on_stages(ModelConfig config, const Layout& layout) {
  config.layers = layout.pp * layout.vpp;
  config.microbatches = 4;
  return config;
}

void expect_equals_single_rank(const ModelConfig& config, const Layout& layout) {
  ModelConfig all = config;
  all.microbatches *= layout.dp;
  StepAfterBackward parallel(config, layout), single(all, {});
  // Reordered fp32 sums: a sum of n terms is off by at most n * 2^-24 of the sum of their sizes
  // (Higham 2002, 4.2). n is at most 64 here; 6 products, 3 norms and the halves of a softmax that
  // is put together from those of the ranks a layer, with a prediction 3 norms and a projection
  // more, and 4 sums at the ends are chained forward and backward.
  const double bound = 64 * std::pow(2.0, -24) * 2 *
                       (11.0 * static_cast<double>(config.layers) +
                        15.0 * static_cast<double>(config.mtp_num_layers) + 4);
  if (layout.last_stage()) {
    const auto losses = on_host(parallel.step.losses()), expected = on_host(single.step.losses());
    for (std::int64_t m = 0; m < config.microbatches; ++m) {
      const float want =
          expected[static_cast<std::size_t>(layout.dp_rank * config.microbatches + m)];
      EXPECT_NEAR(losses[static_cast<std::size_t>(m)], want, bound * want) << "microbatch " << m;
    }
  }
  const auto mine = parallel.step.gradients();
  for (std::size_t i = 0; i < mine.size(); ++i) {
    const workloads::Shard& shard = parallel.step.shards()[i];
    const at::Tensor full = single.gradient(mine[i].name);
    EXPECT_LE(distance(on_host(mine[i].tensor), on_host(shard.of(full))), bound) << mine[i].name;
  }
}

TEST(LatentsAndPredictionsOnRanks, LossesAndGradientsEqualTheSingleRankModel) {
  ModelConfig both = model(/*latents=*/true, /*predictions=*/2);
  both.recompute = workloads::selective({workloads::RecomputedPart::mla_up_proj});
  ranks->for_each_layout([&](const Layout& layout) { expect_equals_single_rank(both, layout); });
  ranks->for_each_sequence_parallel_layout(
      [&](const Layout& layout) { expect_equals_single_rank(both, layout); });
  ModelConfig packed = model(/*latents=*/false, /*predictions=*/2);
  packed.packed = true;
  ranks->for_each_layout([&](const Layout& layout) { expect_equals_single_rank(packed, layout); });
  ranks->for_each_context_parallel_layout([&](const Layout& layout, const std::string&) {
    // These layouts have no group for the embedding of the last stage.
    expect_equals_single_rank(model(/*latents=*/true, layout.pp == 1 ? 2 : 0), layout);
    if (layout.pp == 1) expect_equals_single_rank(packed, layout);
  });
}

TEST(LatentsAndPredictionsOnRanks, LossesAndGradientsOfStagesEqualTheSingleRankModel) {
  for (const int vpp : {1, 2})
    ranks->for_each_pipeline_layout(vpp, [&](const Layout& layout) {
      expect_equals_single_rank(on_stages(model(vpp == 1, 2), layout), layout);
    });
}

TEST(LatentsAndPredictionsOnRanks, TheLastStageAloneHasThePredictionsAndACopyOfTheEmbedding) {
  ranks->for_each_pipeline_layout(1, [&](const Layout& layout) {
    const ModelConfig config = on_stages(model(/*latents=*/false, 1), layout);
    StepAfterBackward ran(config, layout);
    bool embedding = false, predicts = false;
    for (const auto& [name, tensor] : ran.step.parameters()) {
      embedding |= name == "param:embedding.weight";
      predicts |= name.starts_with("param:mtp.");
    }
    EXPECT_EQ(embedding, layout.first_stage() || layout.last_stage());
    EXPECT_EQ(predicts, layout.last_stage());
    EXPECT_EQ(ran.step.layer_counter().size(0), 1 + (layout.last_stage() ? 1 : 0));
  });
}

TEST(LatentsAndPredictionsOnRanks, ReplaysEqualEagerBitForBit) {
  const std::vector impls{"full_iteration", "local", "transformer_engine"};
  const auto replays = [](const char* impl, const ModelConfig& config, const Layout& layout) {
    TwinSteps twins(config, layout, {.impl = impl, .warmup_steps = 1});
    for (std::int64_t i = 0; i < 3; ++i)
      EXPECT_EQ(difference(twins.step(i)), "") << impl << " step " << i;
    EXPECT_EQ(twins.graph->counters().out_of_order, 0) << impl;
    EXPECT_EQ(twins.witness.canaries, 0) << impl;
    twins.graph->drop_graphs();
  };
  ModelConfig both = model(/*latents=*/true, /*predictions=*/1);
  both.dropout = 0.1;
  for (const char* impl : impls) {
    ranks->for_each_layout([&](const Layout& layout) { replays(impl, both, layout); });
    ranks->for_each_pipeline_layout(
        2, [&](const Layout& layout) { replays(impl, on_stages(both, layout), layout); });
  }
  spread(
      impls, [](const auto&, auto visit) { ranks->for_each_context_parallel_layout(visit); },
      [&](const char* impl, const Layout& layout, const std::string&) {
        if (layout.pp == 1) replays(impl, both, layout);
      });
}

TEST(LatentsAndPredictionsOnRanks, M382ChangesReplaysOfContextParallelRanksAlone) {
  ranks->for_each_context_parallel_layout([&](const Layout& layout, const std::string&) {
    if (layout.pp > 1) return;  // the same on every rank
    TwinSteps twins(model(/*latents=*/true, 0), layout,
                    {.impl = "full_iteration", .warmup_steps = 1},
                    Fault::rotary_keys_frozen_in_exchange);
    EXPECT_TRUE(twins.step(0).equal);
    EXPECT_FALSE(twins.step(1).equal);
    twins.graph->drop_graphs();
  });
}

TEST(LatentsAndPredictionsOnRanks, M388LeavesTheEmbeddingWithTheGradientOfOneStage) {
  ranks->for_each_pipeline_layout(1, [&](const Layout& layout) {
    const ModelConfig config = on_stages(model(/*latents=*/false, 1), layout);
    StepAfterBackward sound(config, layout),
        faulty(config, layout, Fault::prediction_embedding_not_reduced);
    if (!layout.first_stage() && !layout.last_stage()) return;
    EXPECT_NE(on_host(sound.gradient("grad:embedding.weight")),
              on_host(faulty.gradient("grad:embedding.weight")));
  });
}

}  // namespace
}  // namespace graphproof::engines::latents_and_predictions_layouts_test
