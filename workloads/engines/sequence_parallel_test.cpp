// Tensor parallel ranks that share each sequence. Started by mpirun with several ranks; each test
// runs on every layout that fits.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "fixtures/comm/collectives.h"
#include "workloads/testing/ranks_under_test.h"
#include "workloads/testing/small_model.h"
#include "workloads/testing/spread.h"
#include "workloads/testing/step_after_backward.h"
#include "workloads/testing/twin_steps.h"

namespace graphproof::engines::sequence_parallel_test {
namespace {

using workloads::Layout;
using workloads::ModelConfig;
using workloads::on_host;

/// Every parameter that is used outside tensor parallel regions: norms with bias, biases of
/// row-parallel layers, positions.
ModelConfig model() {
  return {.microbatches = 2,
          .normalization = workloads::Normalization::LayerNorm,
          .activation = workloads::Activation::swiglu,
          .position_embedding = workloads::PositionEmbedding::learned_absolute,
          .tied_embeddings = true,
          .qkv_bias = true,
          .linear_bias = true};
}

TEST(SequenceParallel, LossesAndGradientsEqualTheSingleRankModel) {
  ModelConfig again = model();
  again.recompute = workloads::full(workloads::RecomputeConfig::Method::uniform, 1);
  for (const ModelConfig& config : {model(), again, ModelConfig{.microbatches = 2}})
    ranks->for_each_sequence_parallel_layout([&](const Layout& layout) {
      StepAfterBackward parallel(config, layout);
      ModelConfig all = config;
      all.microbatches *= layout.dp;
      StepAfterBackward single(all, {});
      // Reordered fp32 sums: a sum of n terms is off by at most n * 2^-24 of the sum of their sizes
      // (Higham 2002, 4.2). n is at most 256 here (the MLP's inner size); 4 products and 2 norms a
      // layer and 3 more sums are chained forward and backward.
      const double bound =
          256 * std::pow(2.0, -24) * 2 * (6.0 * static_cast<double>(config.layers) + 3);
      const auto losses = on_host(parallel.step.losses()), expected = on_host(single.step.losses());
      double worst = 0;
      for (std::int64_t m = 0; m < config.microbatches; ++m) {
        const float want =
            expected[static_cast<std::size_t>(layout.dp_rank * config.microbatches + m)];
        EXPECT_NEAR(losses[static_cast<std::size_t>(m)], want, bound * want) << "microbatch " << m;
      }
      const auto mine = parallel.step.gradients(), full = single.step.gradients();
      for (std::size_t i = 0; i < mine.size(); ++i) {
        const workloads::Shard& shard = parallel.step.shards()[i];
        const double found = distance(on_host(mine[i].tensor), on_host(shard.of(full[i].tensor)));
        EXPECT_LE(found, bound) << mine[i].name;
        worst = std::max(worst, found);
      }
      if (ranks->rank() == 0)
        std::printf("tp %d dp %d: farthest gradient %.3g, bound %.3g\n", layout.tp, layout.dp,
                    worst, bound);
    });
}

// With one sequence per microbatch the rows have the same order with and without sequence
// parallelism, and both kinds of collective sum in the order of ranks. Only gradients that are
// first summed over a rank's own tokens have another order.
TEST(SequenceParallel, HasTheBitsOfTensorParallelismWhereverTheOrderOfSumsIsTheSame) {
  ModelConfig config = model();
  config.microbatch_size = 1;
  ranks->for_each_sequence_parallel_layout([&](const Layout& layout) {
    Layout without = layout;
    without.sequence_parallel = false;
    StepAfterBackward split(config, layout), whole(config, without);
    EXPECT_EQ(on_host(split.step.losses()), on_host(whole.step.losses()));
    const auto mine = split.step.gradients(), theirs = whole.step.gradients();
    int by_tokens = 0;
    for (std::size_t i = 0; i < mine.size(); ++i) {
      if (split.step.shards()[i].by_tokens) {
        ++by_tokens;
        continue;
      }
      EXPECT_EQ(on_host(mine[i].tensor), on_host(theirs[i].tensor)) << mine[i].name;
    }
    // Of each layer two norms and two row-parallel layers, the final norm, the positions.
    EXPECT_EQ(by_tokens, config.layers * (2 * 2 + 2) + 2 + 1);
  });
}

TEST(SequenceParallel, RanksHaveTheSameGradientOfReplicatedParameters) {
  ranks->for_each_sequence_parallel_layout([&](const Layout& layout) {
    StepAfterBackward ran(model(), layout);
    for (std::size_t i = 0; i < ran.step.shards().size(); ++i) {
      if (ran.step.shards()[i].count > 1) continue;
      const auto& [name, gradient] = ran.step.gradients()[i];
      const at::Tensor all = comm::all_gather(gradient.unsqueeze(0), layout.tp_group);
      for (int peer = 1; peer < layout.tp; ++peer)
        EXPECT_EQ(on_host(all.select(0, peer)), on_host(all.select(0, 0)))
            << name << " of rank " << peer;
    }
  });
}

TEST(SequenceParallel, RanksDrawTheirOwnMasksEverywhereForTheirOwnTokens) {
  ModelConfig config = model();
  config.dropout = 0.1;
  ranks->for_each_sequence_parallel_layout([&](const Layout& layout) {
    StepAfterBackward ran(config, layout);
    for (const auto& [name, mask] : ran.step.masks()) {
      if (name.find("core_attention") == std::string::npos) {
        EXPECT_EQ(mask.size(0), config.microbatch_size * config.seq_length / layout.tp) << name;
      }
      const at::Tensor all = comm::all_gather(mask.unsqueeze(0), layout.tp_group);
      for (int peer = 1; peer < layout.tp; ++peer)
        EXPECT_NE(on_host(all.select(0, peer)), on_host(all.select(0, 0)))
            << name << " of rank " << peer;
    }
  });
}

TEST(SequenceParallel, ReplayEqualsEagerBitForBitUnderEveryEngine) {
  using workloads::ModuleKind;
  ModelConfig config = small(model());
  config.dropout = 0.1;
  const std::vector<EngineConfig> engines = {
      {.impl = "manual", .warmup_steps = 1},
      {.impl = "full_iteration", .warmup_steps = 1},
      {.impl = "local", .warmup_steps = 1},
      {.impl = "local", .modules = {ModuleKind::attn}, .warmup_steps = 1},
      {.impl = "local", .modules = {ModuleKind::attn, ModuleKind::mlp}, .warmup_steps = 1},
      {.impl = "transformer_engine", .warmup_steps = 1},
      {.impl = "transformer_engine", .modules = {ModuleKind::mlp}, .warmup_steps = 1}};
  const auto layouts = [](const auto&, auto visit) {
    ranks->for_each_sequence_parallel_layout(visit);
  };
  spread(engines, layouts, [&](const EngineConfig& engine, const Layout& layout) {
    TwinSteps twins(config, layout, engine);
    for (std::int64_t i = 0; i < 3; ++i)
      EXPECT_EQ(difference(twins.step(i)), "") << engine.impl << " step " << i;
    EXPECT_EQ(twins.graph->counters().replays, 2 * twins.graph->counters().launches_per_step)
        << engine.impl;
    EXPECT_EQ(twins.witness.canaries, 0) << engine.impl;
    twins.graph->drop_graphs();
  });
}

TEST(SequenceParallel, RefusesASequenceThatRanksCannotShareEqually) {
  ModelConfig config;
  config.seq_length = 15;
  try {
    const workloads::TrainStep step(config, {.tp = 2, .sequence_parallel = true},
                                    workloads::device_under_test(), 1, {});
    ADD_FAILURE() << "accepted";
  } catch (const std::invalid_argument& error) {
    EXPECT_NE(std::string(error.what())
                  .find("got seq_length = 15 and tp * cp under sequence parallelism = 2"),
              std::string::npos)
        << error.what();
  }
}

}  // namespace
}  // namespace graphproof::engines::sequence_parallel_test
