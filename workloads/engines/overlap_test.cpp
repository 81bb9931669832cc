// Steps that run layer by layer, with the exchange of tokens on a side stream and delayed weight
// gradients. Started by mpirun with several ranks; each test runs on every layout that fits.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include "fixtures/device/error.h"
#include "workloads/testing/ranks_under_test.h"
#include "workloads/testing/refusal.h"
#include "workloads/testing/twin_steps.h"

namespace graphproof::engines::overlap_test {
namespace {

using fixtures::Fault;

using workloads::Layout;
using workloads::ModelConfig;
using workloads::ModuleKind;

const std::vector<ModuleKind> kAll{ModuleKind::attn, ModuleKind::moe_router,
                                   ModuleKind::moe_preprocess};

/// Three microbatches, so that there is a pair whose forward is not the first and one whose
/// backward is not the last.
ModelConfig by_layer(bool dropless, bool delayed) {
  ModelConfig config{.hidden = 32,
                     .ffn = 64,
                     .vocab = 64,
                     .seq_length = 8,
                     .microbatches = 3,
                     .qkv_bias = true,
                     .experts = 4,
                     .topk = 2,
                     .dropless = dropless,
                     .router_aux_loss = true,
                     .shared_expert = true};
  config.overlap_ep_comm = true;
  config.delay_wgrad = delayed;
  return config;
}
ModelConfig pipelined(ModelConfig config) {
  config.layers = 4;
  config.microbatches = 4;
  return config;
}

std::vector<ModelConfig> two_ways() { return {by_layer(false, false), by_layer(true, true)}; }

std::string way(const ModelConfig& config) {
  return std::string(config.dropless ? "dropless" : "drop and pad") +
         (config.delay_wgrad ? ", delayed" : "");
}

struct StepResult {
  std::vector<std::vector<float>> tensors;  // losses, gradients
  std::vector<std::string> names;
  std::optional<std::int64_t> overlapped;  // buckets of gradients that were reduced in the backward
};
StepResult result_of(const ModelConfig& config, const Layout& layout) {
  auto& device = workloads::device_under_test();
  const c10::Stream stream = device.stream_from_pool();
  const c10::StreamGuard guard(stream);
  workloads::TrainStep step(config, layout, device, 1, {});
  StepResult result;
  for (std::int64_t i = 0; i < 2; ++i)
    step.forward_backward(make_batch(config, layout, 1, i, device.torch_device()));
  auto all = step.gradients();
  all.push_back({"losses", step.losses()});
  for (const NamedTensor& tensor : all) {
    result.names.push_back(tensor.name);
    result.tensors.push_back(workloads::on_host(tensor.tensor));
  }
  result.overlapped = step.reduction().overlapped();
  return result;
}

/// Compares with the same layout in the plain schedule, which pipeline_test.cpp and
/// expert_parallel_test.cpp compare with one rank. The sums are the same and in the same order,
/// except that autograd and the delayed products may transpose them.
void expect_equals_plain_schedule(ModelConfig config, const Layout& layout) {
  SCOPED_TRACE(way(config));
  const StepResult mine = result_of(config, layout);
  config.overlap_ep_comm = config.delay_wgrad = false;
  const StepResult plain = result_of(config, layout);
  const double bound = 256 * std::pow(2.0, -24);
  for (std::size_t i = 0; i < plain.tensors.size(); ++i) {
    double largest = 0, difference = 0;
    for (std::size_t k = 0; k < plain.tensors[i].size(); ++k) {
      largest = std::max<double>(largest, std::abs(plain.tensors[i][k]));
      difference = std::max<double>(difference, std::abs(plain.tensors[i][k] - mine.tensors[i][k]));
    }
    EXPECT_TRUE(largest > 0 || !layout.last_stage())
        << plain.names[i];  // only the last stage has losses
    EXPECT_LE(difference, bound * largest) << plain.names[i];
  }
}

TEST(LayerByLayer, LossesAndGradientsAreThoseOfTheScheduleWithoutOverlap) {
  for (const ModelConfig& config : two_ways())
    ranks->for_each_expert_layout(
        [&](const Layout& layout) { expect_equals_plain_schedule(config, layout); });
}

// The backward of the head adds to it first and that of the embedding at the end, each with a call
// of the counting hook.
TEST(LayerByLayer, ATiedEmbeddingIsReducedAfterItsSecondAddition) {
  for (ModelConfig config : two_ways()) {
    config.tied_embeddings = config.overlap_grad_reduce = true;
    ranks->for_each_expert_layout(
        [&](const Layout& layout) { expect_equals_plain_schedule(config, layout); });
  }
}

TEST(LayerByLayer, LossesAndGradientsOfInterleavedStagesAreThoseOfTheScheduleWithoutOverlap) {
  for (const ModelConfig& config : two_ways())
    ranks->for_each_expert_pipeline_layout(2, [&](const Layout& layout) {
      if (pipelined(config).layers % (layout.pp * layout.vpp) != 0) return;
      expect_equals_plain_schedule(pipelined(config), layout);
    });
}

/// The same with a mamba layer ahead of each expert layer, a layer that predicts at the end, whose
/// embedding gets three additions in a backward, and parts of every kind that are recomputed.
ModelConfig with_all_kinds(ModelConfig config) {
  config.hybrid = config.tied_embeddings = config.overlap_grad_reduce = true;
  config.multi_latent_attention = true;
  config.layers = 4;
  config.mtp_num_layers = 1;
  config.dropout = 0.1;
  using workloads::RecomputedPart;
  config.recompute.parts = {RecomputedPart::core_attn,      RecomputedPart::attention_norm,
                            RecomputedPart::mla_up_proj,    RecomputedPart::mlp_norm,
                            RecomputedPart::shared_experts, RecomputedPart::moe_act};
  return config;
}

TEST(LayerByLayer, MambaLayersPredictionsAndRecomputedPartsAreThoseOfTheScheduleWithoutOverlap) {
  ranks->for_each_expert_layout([&](const Layout& layout) {
    if (layout.ep == layout.dp)
      expect_equals_plain_schedule(with_all_kinds(by_layer(false, true)), layout);
  });
  ranks->for_each_expert_pipeline_layout(2, [&](const Layout& layout) {
    if (layout.ep != layout.dp) return;
    ModelConfig staged = with_all_kinds(by_layer(true, false));
    staged.layers = 2 * layout.pp * layout.vpp;
    staged.microbatches = 4;
    expect_equals_plain_schedule(staged, layout);
  });
}

std::vector<std::int64_t> executed(workloads::TrainStep& step) {
  for (const NamedTensor& tensor : step.ledgers())
    if (tensor.name == "schedule") {
      const at::Tensor list = tensor.tensor.cpu();
      return {list.const_data_ptr<std::int64_t>(),
              list.const_data_ptr<std::int64_t>() + list.numel()};
    }
  return {};
}

TEST(LayerByLayer, TheDeviceRanTheOrderOfTheOrderFunction) {
  auto& device = workloads::device_under_test();
  const c10::Stream stream = device.stream_from_pool();
  const c10::StreamGuard guard(stream);
  ModelConfig config = by_layer(false, true);
  config.microbatches = 2;
  ranks->for_each_expert_layout([&](const Layout& layout) {
    workloads::TrainStep step(config, layout, device, 1, {});
    step.forward_backward(make_batch(config, layout, 1, 0, device.torch_device()));
    // The order is 1 2 | 1 -2 -2.5 2 -1 -1.5 | -2 -2.5 -1 -1.5. Entries of a layer are 4 apart, its
    // weight gradients are 2 further, and microbatches are 1 apart.
    EXPECT_EQ(executed(step),
              (std::vector<std::int64_t>{1, 5, 2, -5, -7, 6, -1, -3, -6, -8, -2, -4}));
  });
}

TEST(LayerByLayer, GraphsOfEveryCutReplayBitForBit) {
  struct Cut {
    ModelConfig config;
    std::vector<ModuleKind> modules;
    std::int64_t warmup_steps;
  };
  for (Cut cut :
       {Cut{by_layer(true, true), kAll, 0}, Cut{by_layer(false, true), {ModuleKind::moe_router}, 1},
        Cut{by_layer(false, false), {ModuleKind::attn}, 1},
        Cut{by_layer(true, false), {ModuleKind::moe_router, ModuleKind::moe_preprocess}, 1}})
    ranks->for_each_expert_layout([&](const Layout& layout) {
      if (layout.ep != layout.dp) return;
      std::string name = way(cut.config);
      for (const ModuleKind kind : cut.modules) name += " " + std::string(workloads::name(kind));
      cut.config.dropout = 0.1;
      TwinSteps twins(
          cut.config, layout,
          {.impl = "transformer_engine", .modules = cut.modules, .warmup_steps = cut.warmup_steps});
      for (std::int64_t i = 0; i < 3; ++i)
        EXPECT_EQ(difference(twins.step(i)), "") << name << " step " << i;
      const Counters counters = twins.graph->counters();
      EXPECT_EQ(counters.graphs,
                (cut.config.delay_wgrad ? 3 : 2) * cut.config.layers * cut.config.microbatches)
          << name;
      EXPECT_EQ(counters.replays, (3 - cut.warmup_steps) * counters.graphs)
          << name << ": every microbatch has graphs of its own";
      EXPECT_EQ(counters.out_of_order, 0) << name;
      EXPECT_EQ(twins.witness.canaries, 0) << name;
      EXPECT_TRUE(twins.witness.moved_tensors.empty()) << name;
      EXPECT_TRUE(twins.witness.changed_by.empty()) << name;
      twins.graph->drop_graphs();
    });
}

TEST(LayerByLayer, GraphsOfAllKindsOfLayersReplayBitForBit) {
  ranks->for_each_expert_layout([&](const Layout& layout) {
    if (layout.ep != layout.dp) return;
    ModelConfig config = with_all_kinds(by_layer(true, true));
    config.grad_accumulation_fusion = true;
    TwinSteps twins(config, layout,
                    {.impl = "transformer_engine",
                     .modules = {ModuleKind::mamba, ModuleKind::moe_router},
                     .warmup_steps = 1});
    for (std::int64_t i = 0; i < 3; ++i) EXPECT_EQ(difference(twins.step(i)), "") << "step " << i;
    // Two mamba layers, two with experts, and the one that predicts.
    EXPECT_EQ(twins.graph->counters().graphs, (2 * 2 + 3 * 3) * config.microbatches);
    EXPECT_EQ(twins.graph->counters().out_of_order, 0);
    EXPECT_EQ(twins.graph_step().reduction().overlapped(), result_of(config, layout).overlapped)
        << "replays count the additions to weights that autograd knows and to those it does not";
    EXPECT_TRUE(twins.witness.changed_by.empty());
    twins.graph->drop_graphs();
  });
}

void expect_whole_step_replays(const ModelConfig& config, const Layout& layout,
                               const std::string& impl) {
  SCOPED_TRACE(impl + ", " + way(config));
  TwinSteps twins(config, layout, {.impl = impl, .warmup_steps = 1});
  for (std::int64_t i = 0; i < 4; ++i) EXPECT_EQ(difference(twins.step(i)), "") << "step " << i;
  EXPECT_EQ(twins.graph->counters().replays, 3);
  EXPECT_EQ(twins.witness.canaries, 0);
  EXPECT_TRUE(twins.witness.moved_tensors.empty());
  EXPECT_TRUE(twins.witness.changed_by.empty());
  twins.graph->drop_graphs();
}

TEST(LayerByLayer, AGraphOfTheWholeStepReplaysBitForBit) {
  for (const bool delayed : {false, true})
    ranks->for_each_expert_layout([&](const Layout& layout) {
      ModelConfig config = by_layer(false, delayed);
      config.dropout = 0.1;
      expect_whole_step_replays(config, layout, delayed ? "full_iteration" : "manual");
    });
}

TEST(LayerByLayer, AGraphOfTheWholeStepOfInterleavedStagesReplaysBitForBitWithOverlappedReduction) {
  ModelConfig config = pipelined(by_layer(false, true));
  config.dropout = 0.1;
  config.overlap_grad_reduce = true;
  ranks->for_each_expert_pipeline_layout(2, [&](const Layout& layout) {
    if (config.layers % (layout.pp * layout.vpp) != 0) return;
    for (const bool fused : {false, true}) {
      config.grad_accumulation_fusion = fused;
      expect_whole_step_replays(config, layout, fused ? "manual" : "full_iteration");
    }
  });
}

TEST(LayerByLayer, CapturesFollowTheOrderWithWeightGradientsAfterTheirBackward) {
  ModelConfig config = by_layer(false, true);
  config.microbatches = 2;
  ranks->for_each_expert_layout([&](const Layout& layout) {
    if (layout.ep != layout.dp) return;
    TwinSteps twins(
        config, layout,
        {.impl = "transformer_engine", .modules = {ModuleKind::attn}, .warmup_steps = 1});
    twins.step(0);
    twins.step(1);
    std::vector<std::string> order;
    for (const CaptureReport& report : twins.witness.reports)
      order.push_back(report.graph.substr(std::string("layers.").size()));
    EXPECT_EQ(order,
              (std::vector<std::string>{
                  "0.attn.forward", "1.attn.forward", "0.attn.1.forward", "1.attn.backward",
                  "1.attn.weight_gradients", "1.attn.1.forward", "0.attn.backward",
                  "0.attn.weight_gradients", "1.attn.1.backward", "1.attn.1.weight_gradients",
                  "0.attn.1.backward", "0.attn.1.weight_gradients"}));
    twins.graph->drop_graphs();
  });
}

TEST(LayerByLayer, GraphsOfInterleavedStagesReplayBitForBitWithOverlappedReduction) {
  ModelConfig config = pipelined(by_layer(false, true));
  config.dropout = 0.1;
  config.overlap_grad_reduce = config.grad_accumulation_fusion =
      true;  // its hooks run only once, after the delayed gradients
  ranks->for_each_expert_pipeline_layout(2, [&](const Layout& layout) {
    if (config.layers % (layout.pp * layout.vpp) != 0) return;
    TwinSteps twins(config, layout,
                    {.impl = "transformer_engine", .modules = kAll, .warmup_steps = 1});
    for (std::int64_t i = 0; i < 3; ++i) EXPECT_EQ(difference(twins.step(i)), "") << "step " << i;
    EXPECT_EQ(twins.witness.canaries, 0);
    twins.graph->drop_graphs();
  });
}

TEST(DelayedGradientsOfGraphs, ThoseThatAreNotPendingOrOfAPartThatNeverRanAreRefused) {
  ModelConfig config = by_layer(false, true);
  config.microbatches = 1;
  ranks->for_each_expert_layout([&](const Layout& layout) {
    if (layout.ep != layout.dp) return;
    TwinSteps twins(
        config, layout,
        {.impl = "transformer_engine", .modules = {ModuleKind::attn}, .warmup_steps = 1});
    for (std::int64_t i = 0; i < 2; ++i) twins.step(i);
    const auto refused = [&](std::int64_t layer) {
      return refusal<std::logic_error>([&] {
        dynamic_cast<workloads::ModuleRunner&>(*twins.graph)
            .run_weight_gradients({ModuleKind::attn, layer, 0}, [] {});
      });
    };
    EXPECT_EQ(
        refused(1),
        "attn of layer 1, microbatch 0: got a call for its weight gradients with none pending; "
        "want it once after each backward; "
        "why: the graph would add those of another backward again; next: call it after the "
        "backward");
    EXPECT_EQ(refused(7),
              "attn of layer 7, microbatch 0: got a call for weight gradients of a part that never "
              "ran; want it after the part's "
              "backward; why: they would be another part's; next: name the part as it was called");
    twins.graph->drop_graphs();
  });
}

TEST(DelayedGradientsOfGraphs, EveryPlantedFaultChangesTheGradientsAndIsCounted) {
  ModelConfig config = by_layer(false, true);
  config.microbatches = 2;
  ranks->for_each_expert_layout([&](const Layout& layout) {
    if (layout.ep != layout.dp) return;
    for (const Fault fault :
         {Fault::none, Fault::weight_gradient_graph_not_replayed,
          Fault::weight_gradients_before_data_gradient, Fault::weight_gradients_added_twice}) {
      TwinSteps twins(
          config, layout,
          {.impl = "transformer_engine", .modules = {ModuleKind::attn}, .warmup_steps = 1}, fault);
      twins.step(0);
      const bool equal = twins.step(1).equal;
      const Counters counters = twins.graph->counters();
      const std::int64_t graphs = 3 * config.layers * config.microbatches;
      EXPECT_EQ(equal, fault == Fault::none) << fault;
      EXPECT_EQ(counters.replays,
                fault == Fault::weight_gradient_graph_not_replayed ? graphs / 3 * 2 : graphs)
          << fault;
      EXPECT_EQ(counters.out_of_order > 0, fault == Fault::weight_gradients_before_data_gradient)
          << fault;
      twins.graph->drop_graphs();
    }
  });
}

std::string failed_capture(TwinSteps& twins) {
  try {
    for (std::int64_t i = 0; i < 2; ++i) twins.step(i);
  } catch (const capture::DeviceError& error) {
    return error.what();
  }
  return "none";
}

TEST(LayerByLayerFaults, M114InAGraphOfTheWholeStepChangesTheGradients) {
  ModelConfig config = by_layer(false, true);
  ranks->for_each_expert_layout([&](const Layout& layout) {
    if (layout.ep != layout.dp) return;
    TwinSteps twins(config, layout, {.impl = "full_iteration", .warmup_steps = 1},
                    Fault::weight_gradients_added_twice);
    EXPECT_TRUE(twins.step(0).equal);
    EXPECT_FALSE(twins.step(1).equal);
    twins.graph->drop_graphs();
  });
}

TEST(LayerByLayerFaults, M115InAGraphOfTheWholeStepLeavesTheExchangeUnjoined) {
  ModelConfig config = by_layer(false, false);
  ranks->for_each_expert_layout([&](const Layout& layout) {
    if (layout.ep != layout.dp) return;
    TwinSteps twins(config, layout, {.impl = "full_iteration", .warmup_steps = 0},
                    Fault::token_exchange_not_joined);
    EXPECT_NE(failed_capture(twins).find("capturing stream has unjoined work"), std::string::npos);
  });
}

TEST(LayerByLayerFaults, M162IsRefusedAtTheEndOfTheCapturedStep) {
  ModelConfig config = by_layer(false, true);
  ranks->for_each_expert_layout([&](const Layout& layout) {
    if (layout.ep != layout.dp) return;
    TwinSteps twins(config, layout, {.impl = "full_iteration", .warmup_steps = 1},
                    Fault::capture_ends_before_delayed_gradients);
    EXPECT_NE(failed_capture(twins).find("still pending at the end of the step"),
              std::string::npos);
    EXPECT_EQ(twins.witness.reports.at(0).status, "error");
    EXPECT_EQ(twins.graph->counters().replays, 0);
  });
}

TEST(LayerByLayerFaults, M163RunsEagerlyAndIsRefusedAtTheEndOfTheCapturedBackward) {
  ModelConfig config = by_layer(false, true);
  ranks->for_each_expert_layout([&](const Layout& layout) {
    if (layout.ep != layout.dp) return;
    TwinSteps twins(config, layout, {.impl = "full_iteration", .warmup_steps = 1},
                    Fault::delayed_weights_seen_by_autograd);
    EXPECT_EQ(difference(twins.step(0)), "");
    EXPECT_NE(failed_capture(twins).find("dependency created on uncaptured work in another stream"),
              std::string::npos);
    EXPECT_EQ(twins.witness.reports.at(0).code, capture::kIsolation);
  });
}

}  // namespace
}  // namespace graphproof::engines::overlap_test
