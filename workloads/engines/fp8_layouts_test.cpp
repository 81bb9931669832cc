// Weights rounded once a step, and products in fp8, on layouts of several ranks. Started by mpirun
// with several ranks; each test runs on every layout that fits.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "workloads/layers/fp8_weights.h"
#include "workloads/testing/ranks_under_test.h"
#include "workloads/testing/small_model.h"
#include "workloads/testing/spread.h"
#include "workloads/testing/step_after_backward.h"
#include "workloads/testing/twin_steps.h"

namespace graphproof::engines::fp8_layouts_test {
namespace {

using fixtures::Fault;

using workloads::Layout;
using workloads::ModelConfig;
using workloads::on_host;

ModelConfig rounded(std::int64_t layers) {
  return small({.layers = layers,
                .microbatches = 4,
                .qkv_bias = true,
                .linear_bias = true,
                .fp8_weights = true});
}

std::map<std::string, at::Tensor> by_name(const std::vector<NamedTensor>& tensors) {
  std::map<std::string, at::Tensor> named;
  for (const auto& [name, tensor] : tensors) named[name] = tensor;
  return named;
}

/// Expects that the rounded copies of all ranks together are those of a single rank, bit for bit,
/// and that losses and gradients agree within the bound of reordered sums, or bit for bit if the
/// layout reorders no sum.
void expect_equals_single_rank(const ModelConfig& config, const Layout& layout) {
  ModelConfig all = config;
  all.microbatches *= layout.dp;
  all.fp8_parts = layout.tp;
  all.fp8_expert_parts = layout.etp;
  StepAfterBackward mine(config, layout), single(all, {});
  const auto copies = by_name(single.step.ledgers()), full = by_name(single.step.gradients());
  // As in pipeline_test.cpp: at most 256 terms, with 6 chained sums per layer and 3 at the ends,
  // forward and backward. Tied embeddings are summed over the stages.
  const bool reordered = layout.tp * layout.dp > 1 || config.tied_embeddings;
  const double bound =
      reordered ? 256 * std::pow(2.0, -24) * 2 * (6.0 * static_cast<double>(config.layers) + 3) : 0;
  const auto gradients = mine.step.gradients(), ledgers = mine.step.ledgers();
  std::size_t cut = 0;
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    const std::string name = gradients[i].name.substr(5);
    const workloads::Shard& shard = mine.step.shards()[i];
    EXPECT_LE(distance(on_host(gradients[i].tensor), on_host(shard.of(full.at(gradients[i].name)))),
              bound)
        << name;
    for (const auto& [ledger, copy] : ledgers)
      if (ledger == "fp8:" + name) {
        EXPECT_EQ(on_host(copy), on_host(shard.of(copies.at(ledger)))) << name;
        cut += shard.count > 1;
      }
  }
  if (layout.last_stage()) {
    const at::Tensor own =
        single.step.losses().narrow(0, layout.dp_rank * config.microbatches, config.microbatches);
    EXPECT_LE(distance(on_host(mine.step.losses()), on_host(own)), bound);
  }
  EXPECT_EQ(cut > 0, layout.tp > 1)
      << "what a rank holds a part of is what has a scale for each part";
  std::vector<float> made(static_cast<std::size_t>(layout.stage_layers(config)), 0);
  for (std::int64_t layer = 0; layer < config.layers; ++layer)
    if (layout.holds(config, layer) && config.uses_fp8(layer))
      made[static_cast<std::size_t>(layout.place(config, layer))] = 4;
  EXPECT_EQ(on_host(workloads::copies_made(ledgers)), made)
      << "each layer's, in the first microbatch of its own chunk";
}

TEST(Fp8Layouts, HaveTheCopiesLossesAndGradientsOfTheSingleRankModel) {
  for (const bool ends : {false, true}) {
    ModelConfig config = rounded(4);
    config.first_last_layers_bf16 = ends;
    ranks->for_each_layout(
        [&](const Layout& layout) { expect_equals_single_rank(config, layout); });
    for (const int vpp : {1, 2})
      ranks->for_each_pipeline_layout(vpp, [&](const Layout& layout) {
        ModelConfig staged = config;
        staged.layers = layout.pp * vpp > 2 ? layout.pp * vpp : 4;
        staged.tied_embeddings = vpp == 2;
        expect_equals_single_rank(staged, layout);
      });
  }
}

TEST(Fp8Layouts, HaveOtherScalesThanAWholeWeight) {
  ranks->for_each_layout([&](const Layout& layout) {
    if (layout.tp == 1) return;
    StepAfterBackward mine(rounded(2), layout), whole(rounded(2), {});
    const auto copies = by_name(whole.step.ledgers());
    const auto parameters = mine.step.parameters();
    bool other = false;
    for (std::size_t i = 0; i < parameters.size(); ++i)
      for (const auto& [ledger, copy] : mine.step.ledgers())
        if (ledger == "fp8:" + parameters[i].name.substr(6))
          other |= on_host(copy) != on_host(mine.step.shards()[i].of(copies.at(ledger)));
    EXPECT_TRUE(other) << "a reference that knew nothing of the parts would be found out";
  });
}

ModelConfig with_experts() {
  ModelConfig config = rounded(2);
  config.linear_bias = false;
  config.experts = 4;
  config.topk = 2;
  config.shared_expert = true;
  return config;
}

// The losses and gradients of experts on every layout are checked by the profile layouts, and
// without the axis by expert_parallel_test.cpp.
TEST(Fp8Layouts, HaveTheCopiesOfTheSingleRanksExperts) {
  const ModelConfig config = with_experts();
  const auto compare = [&](const Layout& layout) {
    ModelConfig all = config;
    all.fp8_parts = layout.tp;
    all.fp8_expert_parts = layout.etp;
    StepAfterBackward mine(config, layout), single(all, {});
    const auto copies = by_name(single.step.ledgers()), own = by_name(mine.step.ledgers());
    const auto parameters = mine.step.parameters();
    std::size_t compared = 0;
    for (std::size_t i = 0; i < parameters.size(); ++i)
      if (const auto copy = own.find("fp8:" + parameters[i].name.substr(6)); copy != own.end()) {
        EXPECT_EQ(on_host(copy->second), on_host(mine.step.shards()[i].of(copies.at(copy->first))))
            << copy->first;
        ++compared;
      }
    EXPECT_EQ(compared, 12u);
  };
  ranks->for_each_expert_layout(compare);
  ranks->for_each_split_expert_layout(
      [&](const Layout& layout, const std::string&) { compare(layout); });
}

struct Row {
  const char* name;
  EngineConfig engine;
  ModelConfig model;
  int vpp = 1;
};

std::vector<Row> rows() {
  ModelConfig plain = rounded(4), again = plain, ends = plain, fused = plain;
  plain.dropout = 0.1;
  again.recompute = workloads::selective({workloads::RecomputedPart::mlp});
  ends.first_last_layers_bf16 = true;
  fused.grad_accumulation_fusion = true;
  using workloads::ModuleKind;
  const auto local = [](std::vector<ModuleKind> modules = {}) {
    return EngineConfig{.impl = "local", .modules = std::move(modules), .warmup_steps = 1};
  };
  const auto te = [](std::vector<ModuleKind> modules = {}) {
    return EngineConfig{
        .impl = "transformer_engine", .modules = std::move(modules), .warmup_steps = 1};
  };
  const EngineConfig whole{.impl = "full_iteration", .warmup_steps = 1},
      manual{.impl = "manual", .warmup_steps = 1};
  // Products in fp8, with scales that all ranks of a stage have in common.
  using workloads::Precision;
  ModelConfig delayed = plain, current = fused, each_time = again;
  delayed.precision = each_time.precision = Precision::fp8_delayed;
  current.precision = Precision::fp8_current;
  each_time.fp8_weights = false;
  // With a scale for each block, which no other rank has a part in.
  ModelConfig blocks = fused, four_bits = again, ends_of_blocks = ends;
  blocks.precision = ends_of_blocks.precision = Precision::mxfp8;
  four_bits.precision = Precision::nvfp4;
  four_bits.fp8_weights = false;
  return {{"layers, delayed scaling", te(), delayed},
          {"layers, current scaling", local(), current},
          {"iteration, delayed scaling", whole, each_time},
          {"layers, blocks of 8 bits", local(), blocks},
          {"iteration, blocks of 4 bits", whole, four_bits},
          {"step, blocks of 8 bits", manual, ends_of_blocks},
          {"layers", local(), plain},
          {"layers", te(), fused},
          {"attention", local({ModuleKind::attn}), ends},
          {"MLP, computed again", te({ModuleKind::mlp}), again},
          {"step", manual, ends},
          {"iteration", whole, again}};
}

void expect_equal_steps(const Row& row, const ModelConfig& model, const Layout& layout) {
  SCOPED_TRACE(row.engine.impl + ", " + row.name);
  TwinSteps twins(model, layout, row.engine);
  for (std::int64_t i = 0; i < 3; ++i) EXPECT_EQ(difference(twins.step(i)), "") << "step " << i;
  twins.eager->evaluate(twins.batch(10));
  twins.graph->evaluate(twins.batch(10));
  EXPECT_EQ(on_host(twins.graph_step().evaluation_losses()),
            on_host(twins.eager_step().evaluation_losses()));
  EXPECT_EQ(difference(twins.step(3)), "") << "after evaluation";
  EXPECT_EQ(twins.witness.canaries, 0);
  EXPECT_TRUE(twins.witness.moved_tensors.empty());
  twins.graph->drop_graphs();
}

TEST(Fp8Layouts, AreReplayedBitForBitOverTensorAndDataParallelRanks) {
  const auto layouts = [](const auto&, auto visit) { ranks->for_each_layout(visit); };
  spread(rows(), layouts,
         [](const Row& row, const Layout& layout) { expect_equal_steps(row, row.model, layout); });
}

TEST(Fp8Layouts, AreReplayedBitForBitWhereOtherRanksUpdateAndGatherTheWeights) {
  const auto layouts = [](const auto&, auto visit) {
    ranks->for_each_layout([&](const Layout& layout) {
      if (layout.dp > 1) visit(layout);
    });
  };
  spread(rows(), layouts, [](const Row& row, const Layout& layout) {
    ModelConfig model = row.model;
    model.overlap_grad_reduce = model.distributed_optimizer = model.overlap_param_gather = true;
    expect_equal_steps(row, model, layout);
  });
}

TEST(Fp8Layouts, AreReplayedBitForBitOnPipelineStages) {
  std::vector<Row> staged = rows();
  for (const std::size_t cut_by_microbatch :
       {0, 1, 3, 4}) {  // here local and transformer_engine have graphs for each microbatch
    staged.push_back(staged[cut_by_microbatch]);
    staged.back().vpp = 2;
  }
  const auto layouts = [](const Row& row, auto visit) {
    ranks->for_each_pipeline_layout(row.vpp, visit);
  };
  spread(staged, layouts, [](const Row& row, const Layout& layout) {
    ModelConfig model = row.model;
    model.layers = std::max<std::int64_t>(4, layout.pp * layout.vpp);
    expect_equal_steps(row, model, layout);
  });
}

TEST(Fp8Layouts, AreReplayedBitForBitLayerByLayerWithDelayedWeightGradients) {
  using workloads::ModuleKind;
  ModelConfig model = with_experts();
  model.qkv_bias = false;
  model.overlap_ep_comm = model.delay_wgrad = true;
  const Row row{"layer by layer",
                {.impl = "transformer_engine",
                 .modules = {ModuleKind::attn, ModuleKind::moe_router, ModuleKind::moe_preprocess},
                 .warmup_steps = 1},
                model};
  ranks->for_each_expert_layout(
      [&](const Layout& layout) { expect_equal_steps(row, model, layout); });
  for (const workloads::Precision precision :
       {workloads::Precision::fp8_delayed, workloads::Precision::mxfp8}) {
    model.precision = precision;
    ranks->for_each_expert_layout(
        [&](const Layout& layout) { expect_equal_steps(row, model, layout); });
  }
}

TEST(Fp8Layouts, AreReplayedBitForBitWithProductsOverSequenceContextAndExpertParallelRanks) {
  using workloads::Precision;
  std::vector<Row> experts, dense;
  for (const Precision precision : {Precision::fp8_delayed, Precision::nvfp4}) {
    experts.push_back(
        {"experts", {.impl = "transformer_engine", .warmup_steps = 1}, with_experts()});
    dense.push_back({"sequence parallel", {.impl = "local", .warmup_steps = 1}, rounded(2)});
    experts.back().model.precision = dense.back().model.precision = precision;
  }
  const auto equal_steps = [](const Row& row, const Layout& layout) {
    expect_equal_steps(row, row.model, layout);
  };
  const auto expert_layouts = [](const Row&, auto visit) {
    ranks->for_each_split_expert_layout(
        [&](const Layout& layout, const std::string&) { visit(layout); });
  };
  const auto sequence_layouts = [](const Row&, auto visit) {
    ranks->for_each_sequence_parallel_layout(visit);
  };
  spread(experts, expert_layouts, equal_steps);
  spread(dense, sequence_layouts, equal_steps);
}

// The input of the first projection is the same in every layout, bit for bit, and so is its weight.
TEST(Fp8Layouts, ScaleByTheLargestElementOfAllRanksOfAStage) {
  ranks->for_each_layout([&](const Layout& layout) {
    ModelConfig model = rounded(2);
    model.precision = workloads::Precision::fp8_delayed;
    model.microbatches = 1;
    ModelConfig all = model;
    all.microbatches = layout.dp;
    StepAfterBackward mine(model, layout), single(all, {});
    const auto history = [](workloads::TrainStep& step) {
      for (const auto& [name, tensor] : step.fp8_state())
        if (name == "state:fp8.forward.history") return tensor.cpu();
      return at::Tensor();
    };
    const at::Tensor ours = history(mine.step),
                     want = history(single.step).narrow(0, 0, layout.dp).amax(0);
    for (const std::int64_t cast : {0, 1})
      EXPECT_EQ(ours[0][cast].item<float>(), want[cast].item<float>()) << cast;
    EXPECT_GT(want[0].item<float>(), 0);
  });
}

// Two of the model's four layers are its first and last, and each layer is alone on its stage: a
// stage must not treat its own first or last layer as the model's.
TEST(Fp8LayoutsFaults, M161RoundsTheFirstAndLastLayerOnTheirStages) {
  ranks->for_each_pipeline_layout(2, [&](const Layout& layout) {
    if (layout.pp != 2) return;
    ModelConfig model = rounded(4);
    model.first_last_layers_bf16 = true;
    TwinSteps twins(model, layout, {.impl = "local", .warmup_steps = 1},
                    Fault::unrounded_layers_rounded_in_capture);
    for (std::int64_t i = 0; i < 2; ++i) twins.step(i);
    const auto made = [](workloads::TrainStep& step) {
      return on_host(workloads::copies_made(step.ledgers()));
    };
    EXPECT_EQ(made(twins.eager_step()),
              layout.first_stage() ? (std::vector<float>{0, 4}) : (std::vector<float>{4, 0}));
    EXPECT_EQ(made(twins.graph_step()), (std::vector<float>{4, 4}));
    twins.graph->drop_graphs();
  });
}

}  // namespace
}  // namespace graphproof::engines::fp8_layouts_test
