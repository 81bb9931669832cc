// Context parallel ranks, which share each sequence chunk by chunk. Started by mpirun with several
// ranks; each test runs on every layout that fits, with both methods to exchange keys and values.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "fixtures/comm/collectives.h"
#include "workloads/testing/ranks_under_test.h"
#include "workloads/testing/spread.h"
#include "workloads/testing/step_after_backward.h"
#include "workloads/testing/twin_steps.h"

namespace graphproof::engines::context_parallel_test {
namespace {

using fixtures::Fault;

using workloads::Layout;
using workloads::ModelConfig;
using workloads::on_host;

/// The smallest model for four ranks: eight chunks of two tokens.
ModelConfig rotary_model() {
  return {.hidden = 32,
          .kv_groups = 2,
          .ffn = 64,
          .vocab = 32,
          .seq_length = 16,
          .microbatches = 2,
          .qkv_bias = true};
}
/// With learned positions, of which each rank uses its own rows.
ModelConfig learned_model() {
  ModelConfig config = rotary_model();
  config.position_embedding = workloads::PositionEmbedding::learned_absolute;
  config.normalization = workloads::Normalization::LayerNorm;
  config.linear_bias = true;
  return config;
}

constexpr workloads::CpCommType kCommTypes[] = {workloads::CpCommType::p2p,
                                                workloads::CpCommType::all_gather};
/// For spread(): the layouts that exchange keys and values in this way.
auto layouts_with(workloads::CpCommType type) {
  return [type](const auto&, auto visit) {
    ranks->for_each_context_parallel_layout([&](const Layout& layout, const std::string& name) {
      if (layout.cp_comm_type == type) visit(layout, name);
    });
  };
}

/// With scans over whole sequences: one mamba layer and one transformer layer on each of two
/// stages.
ModelConfig hybrid_model() {
  ModelConfig config = rotary_model();
  config.hybrid = true;
  config.layers = config.kv_groups = 4;
  return config;
}
ModelConfig packed_hybrid_model() {
  ModelConfig config = hybrid_model();
  config.packed = true;
  return config;
}

TEST(ContextParallel, LossesAndGradientsEqualTheSingleRankModel) {
  ModelConfig attention_again = rotary_model(), layers_again = rotary_model();
  attention_again.recompute = workloads::selective({workloads::RecomputedPart::core_attn});
  layers_again.recompute = workloads::full(workloads::RecomputeConfig::Method::uniform, 1);
  ModelConfig carried = rotary_model();
  carried.experts = 4;
  carried.topk = 2;
  carried.shared_expert = carried.dropless = true;
  ModelConfig gathered = carried;
  gathered.gather_tokens = true;
  ModelConfig packed = rotary_model();
  packed.packed = true;
  ModelConfig packed_learned = learned_model();
  packed_learned.packed = true;
  const std::vector models = {
      rotary_model(),        learned_model(), hybrid_model(), packed,  packed_learned,
      packed_hybrid_model(), attention_again, layers_again,   carried, gathered};
  for (const workloads::CpCommType type : kCommTypes)
    spread(models, layouts_with(type),
           [&](const ModelConfig& config, const Layout& layout, const std::string& name) {
             StepAfterBackward parallel(config, layout);
             ModelConfig all = config;
             all.microbatches *= layout.dp;
             StepAfterBackward single(all, {});
             // Reordered fp32 sums: a sum of n terms is off by at most n * 2^-24 of the sum of
             // their sizes (Higham 2002, 4.2). n is at most 256 here; 4 products, 2 norms and the
             // two halves of a softmax that is put together from those of the ranks a layer, with
             // experts the router and the sum over a token's experts too, and 3 more sums are
             // chained forward and backward. A mamba layer has 12, and exponents that are sums
             // below 50, whose error counts as often.
             const double sums = config.experts > 0 || config.hybrid ? 10.0 : 8.0;
             const double bound =
                 std::pow(2.0, -24) * (256 * 2 * (sums * static_cast<double>(config.layers) + 3) +
                                       (config.hybrid ? 50 : 0));
             const auto losses = on_host(parallel.step.losses()),
                        expected = on_host(single.step.losses());
             double worst = 0;
             for (std::int64_t m = 0; layout.last_stage() && m < config.microbatches; ++m) {
               const float want =
                   expected[static_cast<std::size_t>(layout.dp_rank * config.microbatches + m)];
               EXPECT_NEAR(losses[static_cast<std::size_t>(m)], want, bound * want)
                   << "microbatch " << m;
             }
             const auto mine = parallel.step.gradients();
             for (std::size_t i = 0; i < mine.size(); ++i) {
               const workloads::Shard& shard = parallel.step.shards()[i];
               const at::Tensor full = single.gradient(mine[i].name);
               const double found = distance(on_host(mine[i].tensor), on_host(shard.of(full)));
               EXPECT_LE(found, bound) << mine[i].name;
               worst = std::max(worst, found);
             }
             if (ranks->rank() == 0)
               std::printf("%s: farthest gradient %.3g, bound %.3g\n", name.c_str(), worst, bound);
           });
}

TEST(ContextParallel, ReplicasHoldTheSameLossesAndGradients) {
  ranks->for_each_context_parallel_layout([&](const Layout& layout, const std::string&) {
    StepAfterBackward ran(learned_model(), layout);
    auto tensors = ran.step.gradients();
    const std::vector<float> losses = on_host(ran.step.losses());
    for (const auto& [name, tensor] : tensors) {
      const at::Tensor all = comm::all_gather(tensor.unsqueeze(0), layout.replica_group());
      for (int peer = 1; peer < layout.replicas(); ++peer)
        EXPECT_EQ(on_host(all.select(0, peer)), on_host(all.select(0, 0)))
            << name << " of replica " << peer;
    }
    const at::Tensor of_sequence =
        comm::all_gather(ran.step.losses().unsqueeze(0), layout.cp_group);
    for (int peer = 0; peer < layout.cp; ++peer)
      EXPECT_EQ(on_host(of_sequence.select(0, peer)), losses);
  });
}

TEST(ContextParallel, MasksOfAttentionCoverOwnQueriesAndEverybodysKeys) {
  ModelConfig config = rotary_model();
  config.dropout = 0.1;
  ranks->for_each_context_parallel_layout([&](const Layout& layout, const std::string&) {
    StepAfterBackward ran(config, layout);
    for (const auto& [name, mask] : ran.step.masks()) {
      if (name.find("core_attention") != std::string::npos) {
        EXPECT_EQ(mask.size(1), config.heads / config.kv_groups * config.seq_length / layout.cp)
            << name;
        EXPECT_EQ(mask.size(2), config.seq_length) << name;
      } else {
        EXPECT_EQ(mask.size(0), config.microbatch_size * config.seq_length / layout.cp / layout.tp)
            << name;
      }
    }
  });
}

TEST(ContextParallel, ReplayEqualsEagerBitForBitUnderEveryEngine) {
  using workloads::ModuleKind;
  ModelConfig config = rotary_model();
  config.dropout = 0.1;
  config.packed = true;
  using workloads::CpCommType;
  struct Row {
    CpCommType type;
    EngineConfig engine;
  };
  const std::vector<Row> rows = {
      {CpCommType::all_gather, {.impl = "manual", .warmup_steps = 1}},
      {CpCommType::p2p, {.impl = "full_iteration", .warmup_steps = 1}},
      {CpCommType::p2p, {.impl = "local", .warmup_steps = 1}},
      {CpCommType::all_gather, {.impl = "local", .modules = {ModuleKind::attn}, .warmup_steps = 1}},
      {CpCommType::all_gather, {.impl = "transformer_engine", .warmup_steps = 1}},
      {CpCommType::p2p,
       {.impl = "transformer_engine", .modules = {ModuleKind::attn}, .warmup_steps = 1}},
      {CpCommType::p2p, {.impl = "callables", .warmup_steps = 1}}};
  const auto fitting = [](const Row& row, auto visit) {
    layouts_with(row.type)(row, [&](const Layout& layout, const std::string& name) {
      if (row.engine.impl != "callables" || layout.pp == 1)
        visit(layout, name);  // callables know no schedule
    });
  };
  spread(rows, fitting, [&](const Row& row, const Layout& layout, const std::string&) {
    const std::string& impl = row.engine.impl;
    TwinSteps twins(config, layout, row.engine);
    for (std::int64_t i = 0; i < 3; ++i)
      EXPECT_EQ(difference(twins.step(i)), "") << impl << " step " << i;
    EXPECT_EQ(twins.graph->counters().replays, 2 * twins.graph->counters().launches_per_step)
        << impl;
    EXPECT_EQ(twins.witness.canaries, 0) << impl;
    twins.graph->drop_graphs();
  });
}

TEST(ContextParallel, ReplayOfMambaLayersEqualsEagerBitForBit) {
  using workloads::ModuleKind;
  ModelConfig config = packed_hybrid_model();
  config.dropout = 0.1;
  const std::vector<EngineConfig> engines = {
      {.impl = "full_iteration", .warmup_steps = 1},
      {.impl = "local", .modules = {ModuleKind::mamba}, .warmup_steps = 1}};
  spread(engines, layouts_with(workloads::CpCommType::p2p),
         [&](const EngineConfig& engine, const Layout& layout, const std::string& name) {
           TwinSteps twins(config, layout, engine);
           for (std::int64_t i = 0; i < 3; ++i)
             EXPECT_EQ(difference(twins.step(i)), "")
                 << engine.impl << " " << name << " step " << i;
           EXPECT_EQ(twins.witness.canaries, 0) << engine.impl;
           twins.graph->drop_graphs();
         });
}

// M121: the state of one document continues in the next. M122: a scan over chunks that are not in
// order.
TEST(ContextParallel, FaultsOfAScanShowWhereTheyArePlanted) {
  ranks->for_each_context_parallel_layout([&](const Layout& layout, const std::string&) {
    const ModelConfig config = packed_hybrid_model();
    StepAfterBackward sound(config, layout),
        mixed(config, layout, Fault::mamba_state_crosses_documents),
        shuffled(config, layout, Fault::chunks_scanned_in_order_of_arrival);
    if (!layout.last_stage()) return;
    EXPECT_GT(distance(on_host(mixed.step.losses()), on_host(sound.step.losses())), 1e-3);
    EXPECT_GT(distance(on_host(shuffled.step.losses()), on_host(sound.step.losses())), 1e-3);
  });
}

// M101: other rotary positions change the attention. M102: the forward does not change, but the
// projections for keys and values lack the gradients from the other ranks.
TEST(ContextParallel, PlantedFaultsShowWhereTheyArePlanted) {
  ranks->for_each_context_parallel_layout([&](const Layout& layout, const std::string&) {
    const ModelConfig config = rotary_model();
    StepAfterBackward sound(config, layout),
        moved(config, layout, Fault::contiguous_context_parallel_positions),
        kept(config, layout, Fault::key_value_gradients_not_returned);
    if (layout.last_stage()) {
      EXPECT_GT(distance(on_host(moved.step.losses()), on_host(sound.step.losses())), 1e-3);
    }
    EXPECT_EQ(on_host(kept.step.losses()), on_host(sound.step.losses()));
    for (std::int64_t layer = 0; layer < config.layers; ++layer) {
      if (!layout.holds(config, layer)) continue;
      const std::string name = "grad:layers." + std::to_string(layer) + ".attention.qkv.weight";
      EXPECT_GT(distance(on_host(kept.gradient(name)), on_host(sound.gradient(name))), 0.01)
          << name;
    }
  });
}

std::string refusal(const ModelConfig& config, const Layout& layout) {
  try {
    const workloads::TrainStep step(config, layout, workloads::device_under_test(), 1, {});
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "accepted";
}

TEST(ContextParallel, RefusesWhatItsRanksCannotShareEqually) {
  ModelConfig config;
  config.seq_length = 18;
  EXPECT_NE(refusal(config, {.cp = 2}).find("got seq_length = 18 and 2 * cp = 4"),
            std::string::npos);
  config = hybrid_model();
  config.kv_groups = 1;
  EXPECT_NE(refusal(config, {.cp = 2}).find("got kv_groups = 1 and tp * cp in a hybrid model = 2"),
            std::string::npos);
  const ModelConfig biased{.linear_bias = true, .experts = 4, .topk = 2};
  EXPECT_NE(
      refusal(biased, {.etp = 2, .cp = 2}).find("got etp = 2 and linear_bias; want one of them"),
      std::string::npos);
  const ModelConfig odd{.ffn = 255, .experts = 4, .topk = 2};
  EXPECT_NE(refusal(odd, {.etp = 2, .cp = 2}).find("got ffn = 255 and etp = 2"), std::string::npos);
}

}  // namespace
}  // namespace graphproof::engines::context_parallel_test
