// Pipelines. Started by mpirun with several ranks; each test runs on every layout that fits.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "workloads/testing/ranks_under_test.h"
#include "workloads/testing/spread.h"
#include "workloads/testing/step_after_backward.h"
#include "workloads/testing/twin_steps.h"

namespace graphproof::engines::pipeline_test {
namespace {

using fixtures::Fault;

using workloads::Layout;
using workloads::ModelConfig;
using workloads::on_host;

// One schedule of each kind, with the chunks of a stage.
const std::vector<int> kChunks = {1, 2};

/// For spread(): the layouts of a row that has a number of chunks.
const auto kPipelineLayouts = [](const auto& row, auto visit) {
  ranks->for_each_pipeline_layout(row.vpp, visit);
};
const auto kExpertPipelineLayouts = [](const auto& row, auto visit) {
  ranks->for_each_expert_pipeline_layout(row.vpp, visit);
};

/// The smallest model, because pipelines do not depend on sizes and the ranks share cores here.
ModelConfig model(const Layout& layout, std::int64_t microbatches,
                  std::int64_t layers_of_chunk = 1) {
  return {.layers = layers_of_chunk * layout.pp * layout.vpp,
          .hidden = 32,
          .ffn = 64,
          .vocab = 32,
          .seq_length = 8,
          .microbatches = microbatches,
          .position_embedding = workloads::PositionEmbedding::learned_absolute,
          .linear_bias = true};
}
ModelConfig expert_model(const Layout& layout, std::int64_t microbatches) {
  ModelConfig config = model(layout, microbatches);
  config.experts = 4;
  config.topk = 2;
  config.shared_expert = true;
  return config;
}
ModelConfig tied_model(const Layout& layout, std::int64_t microbatches) {
  ModelConfig config = model(layout, microbatches);
  config.tied_embeddings = true;
  return config;
}

// A pipeline changes no sum: every microbatch runs the same layers, and gradients are added in the
// same order. With two microbatches on four stages some stages have no steady phase. Several chunks
// need whole groups of microbatches.
TEST(Pipeline, HasTheBitsOfTheSingleRankModelOnStagesAlone) {
  const std::pair<int, std::int64_t> rows[] = {{1, 1}, {1, 2}, {1, 6}, {2, 4}, {2, 8}};
  for (const auto& [vpp, microbatches] : rows)
    ranks->for_each_pipeline_layout(vpp, [&, microbatches = microbatches](const Layout& layout) {
      if (layout.tp * layout.dp > 1) return;  // the same on every rank
      const ModelConfig config = model(layout, microbatches, /*layers_of_chunk=*/2);
      StepAfterBackward piped(config, layout), single(config, {});
      for (const auto& [name, tensor] : piped.step.gradients())
        EXPECT_EQ(on_host(tensor), on_host(single.gradient(name)))
            << name << ", " << microbatches << " microbatches";
      if (layout.last_stage()) {
        EXPECT_EQ(on_host(piped.step.losses()), on_host(single.step.losses()));
      } else {
        EXPECT_EQ(on_host(piped.step.losses()),
                  std::vector<float>(static_cast<std::size_t>(microbatches), 0));
      }
    });
}

TEST(Pipeline, HoldsEveryParameterOnOneStageAndTiedEmbeddingsOnTheFirstAndTheLast) {
  for (const int vpp : kChunks)
    ranks->for_each_pipeline_layout(vpp, [&](const Layout& layout) {
      const ModelConfig tied = tied_model(layout, 4);
      StepAfterBackward piped(tied, layout);
      bool embedding = false;
      for (const auto& [name, tensor] : piped.step.parameters()) {
        embedding |= name == "param:embedding.weight";
        const std::string prefix = "param:layers.";
        if (!name.starts_with(prefix)) continue;
        const std::int64_t layer = std::stoll(name.substr(prefix.size()));
        EXPECT_EQ(layer / (tied.layers / layout.pp / layout.vpp) % layout.pp, layout.pp_rank)
            << name;
      }
      EXPECT_EQ(embedding, layout.first_stage() || layout.last_stage());
    });
}

void expect_equals_single_rank(const ModelConfig& config, const Layout& layout) {
  ModelConfig all = config;
  all.microbatches *= layout.dp;
  StepAfterBackward piped(config, layout), single(all, {});
  // Reordered fp32 sums, as in sequence_parallel_test.cpp: 6 of at most 256 terms a layer, with
  // experts 2 more (router, sum over a token's experts), and 3 at the ends are chained forward and
  // backward.
  const double bound = 256 * std::pow(2.0, -24) * 2 *
                       ((config.experts > 0 ? 8.0 : 6.0) * static_cast<double>(config.layers) + 3);
  double worst = 0;
  const auto mine = piped.step.gradients();
  for (std::size_t i = 0; i < mine.size(); ++i) {
    const workloads::Shard& shard = piped.step.shards()[i];
    const at::Tensor full = single.gradient(mine[i].name);
    const double found = distance(on_host(mine[i].tensor), on_host(shard.of(full)));
    EXPECT_LE(found, bound) << mine[i].name;
    worst = std::max(worst, found);
  }
  if (layout.last_stage()) {
    const auto losses = on_host(piped.step.losses()), expected = on_host(single.step.losses());
    for (std::int64_t m = 0; m < config.microbatches; ++m) {
      const float want =
          expected[static_cast<std::size_t>(layout.dp_rank * config.microbatches + m)];
      EXPECT_NEAR(losses[static_cast<std::size_t>(m)], want, bound * want) << "microbatch " << m;
    }
  }
  if (ranks->rank() == 0)
    std::printf("pp %d vpp %d tp %d dp %d ep %d: farthest gradient %.3g, bound %.3g\n", layout.pp,
                layout.vpp, layout.tp, layout.dp, layout.ep, worst, bound);
}

TEST(Pipeline, LossesAndGradientsEqualTheSingleRankModelOnEveryLayout) {
  for (const auto& [vpp, tied] : {std::pair{1, false}, {1, true}, {2, true}})
    ranks->for_each_pipeline_layout(vpp, [&, tied = tied](const Layout& layout) {
      expect_equals_single_rank(tied ? tied_model(layout, 4) : model(layout, 4), layout);
    });
}

// On every layout the experts get the same tokens of a microbatch, so the same assignments are
// dropped.
TEST(Pipeline, LossesAndGradientsOfExpertsEqualTheSingleRankModelDropsIncluded) {
  for (const int vpp : kChunks)
    ranks->for_each_expert_pipeline_layout(vpp, [&](const Layout& layout) {
      const ModelConfig config = expert_model(layout, 4);
      expect_equals_single_rank(config, layout);
      StepAfterBackward piped(config, layout);
      EXPECT_EQ(piped.step.dropped().sizes(), at::IntArrayRef({layout.stage_layers(config)}));
      EXPECT_GT(piped.step.dropped().sum().item<std::int64_t>(), 0)
          << "or the ledger shows nothing";
    });
}

const workloads::RecomputeConfig kSelective = workloads::selective(
    {workloads::RecomputedPart::core_attn, workloads::RecomputedPart::mlp_norm});
const workloads::RecomputeConfig kUniform =
    workloads::full(workloads::RecomputeConfig::Method::uniform, 1);
const workloads::RecomputeConfig kBlock =
    workloads::full(workloads::RecomputeConfig::Method::block, 1);

TEST(Pipeline, RecomputeHasTheBitsOfTheSingleRankModelOnStagesAlone) {
  for (const auto& [vpp, recompute] :
       {std::pair{1, kSelective}, {2, kSelective}, {1, kUniform}, {2, kUniform}})
    ranks->for_each_pipeline_layout(vpp, [&, recompute = recompute](const Layout& layout) {
      if (layout.tp * layout.dp > 1) return;  // the same on every rank
      ModelConfig config = model(layout, 4, /*layers_of_chunk=*/2);
      config.recompute = recompute;
      StepAfterBackward piped(config, layout), single(config, {});
      for (const auto& [name, tensor] : piped.step.gradients())
        EXPECT_EQ(on_host(tensor), on_host(single.gradient(name))) << name;
    });
}

// A block is counted within each chunk, so a single rank recomputes other layers: the sums are the
// same in another order.
TEST(Pipeline, LossesAndGradientsWithRecomputeEqualTheSingleRankModelOnEveryLayout) {
  for (const auto& [vpp, recompute] : {std::pair{1, kUniform}, {2, kBlock}})
    ranks->for_each_pipeline_layout(vpp, [&, recompute = recompute](const Layout& layout) {
      ModelConfig config = model(layout, 4, /*layers_of_chunk=*/2);
      config.recompute = recompute;
      expect_equals_single_rank(config, layout);
    });
}

// With dropout, because a recompute with the masks of another microbatch would give other outputs.
// With full(block,1) the first layer of each chunk is recomputed.
TEST(Pipeline, RecomputeLedgerHoldsTheLayersOfItsStageInReplaysToo) {
  const auto named = [](workloads::TrainStep& step, const std::string& name) {
    for (const auto& [other, tensor] : step.ledgers())
      if (other == name) return tensor;
    return at::Tensor();
  };
  struct Row {
    int vpp;
    workloads::RecomputeConfig recompute;
  };
  spread(std::vector<Row>{{1, kSelective}, {2, kUniform}, {2, kBlock}}, kPipelineLayouts,
         [&](const Row& row, const Layout& layout) {
           ModelConfig config = model(layout, 4, /*layers_of_chunk=*/2);
           config.dropout = 0.1;
           config.recompute = row.recompute;
           TwinSteps twins(config, layout, {.impl = "manual", .warmup_steps = 1});
           for (std::int64_t i = 0; i < 3; ++i)
             EXPECT_EQ(difference(twins.step(i)), "") << "step " << i;
           const bool block = row.recompute.method == workloads::RecomputeConfig::Method::block;
           const std::int64_t layers = block ? row.vpp : layout.stage_layers(config);
           const auto parts = static_cast<std::int64_t>(row.recompute.parts.size());
           for (workloads::TrainStep* step : {&twins.eager_step(), &twins.graph_step()}) {
             EXPECT_EQ(named(*step, "recompute:first").sizes(),
                       at::IntArrayRef({parts, 4, layers}));
             EXPECT_EQ(on_host(named(*step, "recompute:again")),
                       on_host(named(*step, "recompute:first")));
             EXPECT_EQ(on_host(step->recompute_counter()),
                       std::vector<float>(static_cast<std::size_t>(parts * layers), 3 * 4));
           }
           twins.graph->drop_graphs();
         });
}

TEST(Pipeline, ReplayOfExpertsAndRecomputeEqualsEagerBitForBitUnderEveryEngine) {
  using workloads::ModuleKind;
  using workloads::RecomputedPart;
  struct Row {
    int vpp;
    EngineConfig engine;
    workloads::RecomputeConfig recompute = {};
  };
  const std::vector<Row> rows = {
      {1, {.impl = "manual", .warmup_steps = 1}, workloads::selective({RecomputedPart::moe})},
      {1,
       {.impl = "local", .warmup_steps = 1},
       workloads::selective({RecomputedPart::moe_act, RecomputedPart::attention_norm})},
      {1,
       {.impl = "local",
        .modules = {ModuleKind::moe_router, ModuleKind::moe_preprocess},
        .warmup_steps = 1}},
      {1,
       {.impl = "transformer_engine",
        .modules = {ModuleKind::attn, ModuleKind::moe_router, ModuleKind::moe_preprocess},
        .warmup_steps = 1},
       workloads::selective({RecomputedPart::core_attn, RecomputedPart::shared_experts})},
      {2,
       {.impl = "transformer_engine", .warmup_steps = 1},
       workloads::selective({RecomputedPart::core_attn})},
      {2, {.impl = "full_iteration", .warmup_steps = 1}, kBlock}};
  spread(rows, kExpertPipelineLayouts, [&](const Row& row, const Layout& layout) {
    const std::string& impl = row.engine.impl;
    ModelConfig config = expert_model(layout, 4);
    config.dropout = 0.1;
    config.recompute = row.recompute;
    TwinSteps twins(config, layout, row.engine);
    for (std::int64_t i = 0; i < 3; ++i)
      EXPECT_EQ(difference(twins.step(i)), "") << impl << " step " << i;
    EXPECT_EQ(twins.graph->counters().replays, 2 * twins.graph->counters().launches_per_step)
        << impl;
    EXPECT_EQ(on_host(twins.graph_step().dropped()), on_host(twins.eager_step().dropped())) << impl;
    EXPECT_EQ(twins.witness.canaries, 0) << impl;
    twins.graph->drop_graphs();
  });
}

TEST(Pipeline, ReplayEqualsEagerBitForBitUnderEveryEngine) {
  struct Row {
    int vpp;
    EngineConfig engine;
  };
  const std::vector<Row> rows = {
      {1, {.impl = "manual", .warmup_steps = 1}},
      {1, {.impl = "local", .warmup_steps = 1}},
      {1,
       {.impl = "transformer_engine", .modules = {workloads::ModuleKind::attn}, .warmup_steps = 1}},
      {2, {.impl = "transformer_engine", .warmup_steps = 1}},
      {2, {.impl = "full_iteration", .warmup_steps = 1}},
      {2, {.impl = "local", .warmup_steps = 1}},
      {2, {.impl = "local", .pool = PoolSharing::per_microbatch, .warmup_steps = 1}}};
  spread(rows, kPipelineLayouts, [&](const Row& row, const Layout& layout) {
    const std::string& impl = row.engine.impl;
    ModelConfig config = tied_model(layout, 4);
    config.dropout = 0.1;
    TwinSteps twins(config, layout, row.engine);
    for (std::int64_t i = 0; i < 3; ++i)
      EXPECT_EQ(difference(twins.step(i)), "") << impl << " step " << i;
    EXPECT_EQ(twins.graph->counters().replays, 2 * twins.graph->counters().launches_per_step)
        << impl;
    EXPECT_EQ(twins.graph->counters().out_of_order, 0) << impl;
    EXPECT_EQ(twins.witness.canaries, 0) << impl;
    if (impl != "manual") {
      twins.eager->step(twins.batch(3), 0.05);
      twins.graph->floor_step(twins.batch(3), 0.05);
      twins.device().synchronize();
      EXPECT_EQ(difference(fixtures::compare(twins.eager->outputs(), twins.graph->outputs())), "")
          << "the floor of " << impl;
    }
    twins.graph->drop_graphs();
  });
}

// Also on the last stage, where only one microbatch is outstanding at a time, because the ranks
// vote after each capture.
TEST(Pipeline, LocalHasGraphsForEachMicrobatchOnEveryStage) {
  for (const int vpp : kChunks)
    ranks->for_each_pipeline_layout(vpp, [&](const Layout& layout) {
      const ModelConfig config = model(layout, 4);
      TwinSteps twins(config, layout, {.impl = "local", .warmup_steps = 1});
      for (std::int64_t i = 0; i < 2; ++i) twins.step(i);
      EXPECT_EQ(twins.graph->counters().graphs, 2 * layout.stage_layers(config) * 4);
      EXPECT_EQ(twins.graph->counters().captures, 2 * layout.stage_layers(config) * 4);
      EXPECT_EQ(twins.graph->counters().launches_per_step, 2 * layout.stage_layers(config) * 4);
      twins.graph->drop_graphs();
    });
}

TEST(Pipeline, LedgerHasTheScheduleThatRanAndAReplayWritesItAgain) {
  for (const int vpp : kChunks)
    ranks->for_each_pipeline_layout(vpp, [&](const Layout& layout) {
      TwinSteps twins(model(layout, 4), layout, {.impl = "full_iteration", .warmup_steps = 1});
      for (std::int64_t i = 0; i < 2; ++i) twins.step(i);
      std::vector<float> want;
      for (const order::ScheduleSlot& slot : order::schedule_slots(
               {.pp = layout.pp, .rank = layout.pp_rank, .chunks = vpp, .microbatches = 4}))
        if (slot.work)
          want.push_back(static_cast<float>((slot.work->forward ? 1 : -1) *
                                            (slot.work->chunk * 4 + slot.work->microbatch + 1)));
      for (workloads::TrainStep* step : {&twins.eager_step(), &twins.graph_step()})
        EXPECT_EQ(on_host(step->ledgers().back().tensor.to(at::kFloat)), want);
      twins.graph->drop_graphs();
    });
}

TEST(Pipeline, StagesDrawMasksOfTheirOwnAndOnlyThoseOfTheirLayers) {
  ranks->for_each_pipeline_layout(1, [&](const Layout& layout) {
    ModelConfig config = model(layout, 2);
    config.dropout = 0.1;
    StepAfterBackward ran(config, layout);
    EXPECT_EQ(ran.step.masks().size(),
              static_cast<std::size_t>(2 * 3 * layout.stage_layers(config)));
    const std::string first = "mask:0." + std::to_string(layout.first_layer(config, 0)) + ".";
    EXPECT_TRUE(ran.step.masks()[0].name.starts_with(first)) << ran.step.masks()[0].name;
  });
}

// M94: the embedding gets only the gradient of its own stage. M76: the last stage pairs activations
// with the labels of another microbatch.
TEST(Pipeline, PlantedFaultsShowWhereTheyArePlanted) {
  ranks->for_each_pipeline_layout(1, [&](const Layout& layout) {
    const ModelConfig config = tied_model(layout, 4);
    StepAfterBackward sound(config, layout),
        untied(config, layout, Fault::tied_embedding_not_reduced),
        swapped(config, layout, Fault::stage_swaps_microbatches);
    if (layout.first_stage() || layout.last_stage()) {
      EXPECT_GT(distance(on_host(untied.gradient("grad:embedding.weight")),
                         on_host(sound.gradient("grad:embedding.weight"))),
                0.01);
    }
    EXPECT_EQ(on_host(untied.step.losses()), on_host(sound.step.losses()));
    for (const auto& [name, tensor] : untied.step.gradients()) {
      if (name == "grad:embedding.weight") continue;
      EXPECT_EQ(on_host(tensor), on_host(sound.gradient(name))) << name;
    }
    const auto ran = [](StepAfterBackward& one) {
      return on_host(one.step.ledgers().back().tensor.to(at::kFloat));
    };
    EXPECT_EQ(ran(untied), ran(sound));
    EXPECT_EQ(ran(swapped) == ran(sound), !layout.last_stage());
    EXPECT_EQ(on_host(swapped.step.losses()) == on_host(sound.step.losses()), !layout.last_stage());
  });
}

TEST(Pipeline, RefusesLayersThatStagesCannotShareEqually) {
  ModelConfig config;
  config.layers = 3;
  try {
    const workloads::TrainStep step(config, {.pp = 2}, workloads::device_under_test(), 1, {});
    ADD_FAILURE() << "accepted";
  } catch (const std::invalid_argument& error) {
    EXPECT_NE(std::string(error.what()).find("got layers = 3 and pp * vpp = 2"), std::string::npos)
        << error.what();
  }
}

}  // namespace
}  // namespace graphproof::engines::pipeline_test
