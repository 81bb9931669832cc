// Experts split over ranks, also with mamba layers between them and in bf16. Started by mpirun with
// several ranks; each test runs on every layout that fits.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "fixtures/device/error.h"
#include "workloads/testing/ranks_under_test.h"
#include "workloads/testing/small_model.h"
#include "workloads/testing/spread.h"
#include "workloads/testing/twin_steps.h"

namespace graphproof::engines::expert_parallel_test {
namespace {

using fixtures::Fault;

using workloads::Layout;
using workloads::ModelConfig;

ModelConfig experts() {
  return {.microbatches = 2, .linear_bias = true, .experts = 4, .topk = 2, .shared_expert = true};
}

struct Distance {
  double largest = 0, difference = 0;
};
Distance distance(const std::vector<float>& got, const std::vector<float>& want) {
  Distance found;
  EXPECT_EQ(got.size(), want.size());
  for (std::size_t i = 0; i < std::min(got.size(), want.size()); ++i) {
    found.largest = std::max<double>(found.largest, std::abs(want[i]));
    found.difference = std::max<double>(found.difference, std::abs(got[i] - want[i]));
  }
  return found;
}

/// For spread().
const auto kExpertLayouts = [](const auto&, auto visit) { ranks->for_each_expert_layout(visit); };
const auto kSplitExpertLayouts = [](const auto&, auto visit) {
  ranks->for_each_split_expert_layout(visit);
};

/// Compares losses and gradients of `config` on `layout` with one rank that runs all microbatches.
/// The single rank runs the microbatches of all ranks one after another, so each microbatch has the
/// same tokens and drops the same assignments.
void expect_equals_single_rank(const ModelConfig& config, const Layout& layout, double bound) {
  auto& device = workloads::device_under_test();
  const c10::Stream stream = device.stream_from_pool();
  const c10::StreamGuard guard(stream);
  workloads::TrainStep step(config, layout, device, 1, {});
  step.forward_backward(make_batch(config, layout, 1, 0, device.torch_device()));
  ModelConfig whole = config;
  whole.microbatches *= layout.dp;
  whole.capacity_cp = layout.cp;
  whole.capacity_parts = layout.sequence_parts();
  workloads::TrainStep reference(whole, {}, device, 1, {});
  reference.forward_backward(make_batch(whole, {}, 1, 0, device.torch_device()));

  const auto losses = workloads::on_host(step.losses()),
             expected = workloads::on_host(reference.losses());
  for (std::int64_t m = 0; m < config.microbatches; ++m) {
    const float want = expected[static_cast<std::size_t>(layout.dp_rank * config.microbatches + m)];
    EXPECT_NEAR(losses[static_cast<std::size_t>(m)], want, bound * want) << "microbatch " << m;
  }
  double worst = 0;
  const auto mine = step.gradients(), full = reference.gradients();
  for (std::size_t i = 0; i < mine.size(); ++i) {
    const workloads::Shard& shard = step.shards()[i];
    const auto found =
        distance(workloads::on_host(mine[i].tensor), workloads::on_host(shard.of(full[i].tensor)));
    EXPECT_LE(found.difference, bound * found.largest) << mine[i].name;
    if (found.difference > 0) worst = std::max(worst, found.difference / found.largest);
  }
  if (ranks->rank() == 0)
    std::printf("tp %d cp %d dp %d ep %d etp %d: farthest gradient %.3g, bound %.3g\n", layout.tp,
                layout.cp, layout.dp, layout.ep, layout.etp, worst, bound);
}

TEST(ExpertParallel, LossesAndGradientsEqualTheSingleRankModelDropsIncluded) {
  // Reordered fp32 sums, as in parallel_test.cpp.
  const double bound = 256 * std::pow(2.0, -24) * 2 * (4.0 * 2 + 2);
  ranks->for_each_expert_layout(
      [&](const Layout& layout) { expect_equals_single_rank(experts(), layout, bound); });
}

std::vector<ModelConfig> dropless_experts() {
  ModelConfig carried = experts();
  carried.dropless = true;
  carried.router_aux_loss = carried.router_z_loss = true;
  ModelConfig gathered = carried;
  gathered.gather_tokens = gathered.router_score_correction = true;
  ModelConfig flex = carried;
  flex.flex = true;
  return {carried, gathered, flex};
}

TEST(ExpertParallel, DroplessLossesAndGradientsEqualTheSingleRankModel) {
  const double bound = 256 * std::pow(2.0, -24) * 2 *
                       (6.0 * 2 + 2);  // two more sums per layer: router, experts of a token
  for (const ModelConfig& config : dropless_experts())
    ranks->for_each_expert_layout(
        [&](const Layout& layout) { expect_equals_single_rank(config, layout, bound); });
}

/// With a capacity, with both dispatchers, and with every loss and correction of the router.
std::vector<ModelConfig> balanced_experts() {
  ModelConfig capped = experts();
  capped.linear_bias = false;
  capped.router_aux_loss = capped.router_z_loss = capped.router_score_correction = true;
  ModelConfig carried = capped;
  carried.dropless = true;
  ModelConfig gathered = carried;
  gathered.gather_tokens = true;
  ModelConfig flex = carried;
  flex.flex = true;
  return {capped, carried, gathered, flex};
}

TEST(ExpertParallel, RanksWithPartsOfASequenceAndOfAnExpertEqualTheSingleRankModel) {
  // As above, with the exchange of keys and values and two more sums for experts in parts.
  const double bound = 256 * std::pow(2.0, -24) * 2 * (10.0 * 2 + 3);
  spread(balanced_experts(), kSplitExpertLayouts,
         [&](const ModelConfig& config, const Layout& layout, const std::string& name) {
           const std::string dispatch = config.flex            ? "flex"
                                        : config.gather_tokens ? "gathered"
                                        : config.dropless      ? "dropless"
                                                               : "drop and pad";
           SCOPED_TRACE(dispatch + " " + name);
           expect_equals_single_rank(config, layout, bound);
         });
}

TEST(ExpertParallel, ReplayOfExpertsInPartsEqualsEagerBitForBit) {
  using workloads::ModuleKind;
  ModelConfig config = small(balanced_experts().front());
  config.dropout = 0.1;
  config.microbatches = 1;
  const std::vector<EngineConfig> engines = {
      {.impl = "full_iteration", .warmup_steps = 1},
      {.impl = "transformer_engine",
       .modules = {ModuleKind::moe_router, ModuleKind::moe_preprocess},
       .warmup_steps = 1}};
  spread(engines, kSplitExpertLayouts,
         [&](const EngineConfig& engine, const Layout& layout, const std::string& name) {
           TwinSteps twins(config, layout, engine);
           for (std::int64_t i = 0; i < 3; ++i)
             EXPECT_EQ(difference(twins.step(i)), "")
                 << engine.impl << " " << name << " step " << i;
           twins.graph->drop_graphs();
         });
}

ModelConfig hybrid_model() {
  ModelConfig config = balanced_experts().front();
  config.hybrid = true;
  return config;
}

TEST(Hybrid, LossesAndGradientsOfMambaLayersEqualTheSingleRankModel) {
  // The scan is a product with a triangle of exponentials. Their exponents are sums below 50, so an
  // error of 2^-24 counts 50 times. A mamba layer has 12 sums, including the convolution and two
  // norms, and a layer with experts has 10. Context parallel ranks add no sums, because each scans
  // whole sequences.
  const double bound = (256 * 2 * (12.0 + 10 + 3) + 50) * std::pow(2.0, -24);
  ranks->for_each_split_expert_layout([&](const Layout& layout, const std::string& name) {
    SCOPED_TRACE(name);
    expect_equals_single_rank(hybrid_model(), layout, bound);
  });
}

TEST(Hybrid, ReplayEqualsEagerBitForBitUnderEveryEngineAndCut) {
  using workloads::ModuleKind;
  ModelConfig config = small(hybrid_model());
  config.dropout = 0.1;
  const std::vector<EngineConfig> engines = {
      {.impl = "full_iteration", .warmup_steps = 1},
      {.impl = "manual", .warmup_steps = 1},
      {.impl = "local", .warmup_steps = 1},
      {.impl = "local", .modules = {ModuleKind::mamba}, .warmup_steps = 1},
      {.impl = "transformer_engine", .warmup_steps = 1},
      {.impl = "callables", .modules = {ModuleKind::attn, ModuleKind::mamba}, .warmup_steps = 1},
      {.impl = "transformer_engine",
       .modules = {ModuleKind::attn, ModuleKind::mamba, ModuleKind::moe_router,
                   ModuleKind::moe_preprocess},
       .warmup_steps = 1}};
  spread(engines, kExpertLayouts, [&](const EngineConfig& engine, const Layout& layout) {
    TwinSteps twins(config, layout, engine);
    for (std::int64_t i = 0; i < 3; ++i)
      EXPECT_EQ(difference(twins.step(i)), "") << engine.impl << " step " << i;
    EXPECT_GT(twins.graph->counters().replays, 0) << engine.impl;
    EXPECT_EQ(twins.witness.canaries, 0) << engine.impl;
    twins.graph->drop_graphs();
  });
}

// The parts that Megatron-LM captures: the router, and the preprocessing of the all-to-all.
// Afterwards the host reads token counts.
TEST(ExpertParallel, GraphsOfRouterPartsReplayBitForBitAroundADroplessDispatch) {
  using workloads::ModuleKind;
  for (ModelConfig config : dropless_experts()) {
    config = small(config);
    config.dropout = 0.1;
    const std::vector<ModuleKind> cut =
        config.gather_tokens
            ? std::vector{ModuleKind::moe_router}
            : std::vector{ModuleKind::attn, ModuleKind::moe_router, ModuleKind::moe_preprocess};
    spread(std::vector{"local", "transformer_engine", "callables"}, kExpertLayouts,
           [&](const char* impl, const Layout& layout) {
             TwinSteps twins(config, layout, {.impl = impl, .modules = cut, .warmup_steps = 1});
             for (std::int64_t i = 0; i < 3; ++i)
               EXPECT_EQ(difference(twins.step(i)), "") << impl << " step " << i;
             EXPECT_GT(twins.graph->counters().replays, 0) << impl;
             EXPECT_EQ(twins.witness.canaries, 0) << impl;
             twins.graph->drop_graphs();
           });
  }
}

TEST(ExpertParallel, LossesAndDropsAreTheSameBitsOnEveryLayout) {
  std::vector<float> losses, dropped;
  ranks->for_each_expert_layout([&](const Layout& layout) {
    auto& device = workloads::device_under_test();
    const c10::Stream stream = device.stream_from_pool();
    const c10::StreamGuard guard(stream);
    workloads::TrainStep step(experts(), layout, device, 1, {});
    step.forward_backward(make_batch(experts(), layout, 1, 0, device.torch_device()));
    if (losses.empty()) {
      losses = workloads::on_host(step.losses());
      dropped = workloads::on_host(step.dropped());
    }
    EXPECT_EQ(workloads::on_host(step.dropped()), dropped);
    EXPECT_LE(distance(workloads::on_host(step.losses()), losses).difference,
              std::ldexp(losses[0], -20));
  });
}

TEST(ExpertParallel, ReplayEqualsEagerBitForBit) {
  ModelConfig all = small(experts());
  all.dropout = 0.1;
  all.optimizer = workloads::OptimizerKind::adam;
  spread(std::vector{"manual", "full_iteration"}, kExpertLayouts,
         [&](const char* impl, const Layout& layout) {
           TwinSteps twins(all, layout, {.impl = impl, .warmup_steps = 1});
           for (std::int64_t i = 0; i < 3; ++i)
             EXPECT_EQ(difference(twins.step(i)), "") << impl << " step " << i;
           twins.graph->drop_graphs();
         });
}

TEST(ExpertParallel, ReplayOfRoutersThatKeepTheirLoadEvenEqualsEagerBitForBit) {
  ModelConfig all = small(experts());
  all.router_aux_loss = all.router_z_loss = all.router_score_correction = true;
  const std::vector impls = {"manual", "full_iteration", "local", "transformer_engine"};
  spread(impls, kExpertLayouts, [&](const char* impl, const Layout& layout) {
    TwinSteps twins(all, layout, {.impl = impl, .warmup_steps = 1});
    for (std::int64_t i = 0; i < 3; ++i)
      EXPECT_EQ(difference(twins.step(i)), "") << impl << " step " << i;
    EXPECT_GT(twins.graph_step().optimizer_state().back().tensor.abs().max().item<float>(), 0)
        << impl;
    twins.graph->drop_graphs();
  });
}

TEST(ExpertParallel, GraphsOfModulesReplayBitForBitInEveryCutOfTheExperts) {
  using workloads::ModuleKind;
  ModelConfig all = small(experts());
  all.dropout = 0.1;
  std::vector<EngineConfig> engines;
  // The finest division of a layer is the one in which the residual is an output of the captured
  // router (workloads/model/layer.h).
  for (const std::vector<ModuleKind>& modules :
       {std::vector{ModuleKind::moe_router},
        {ModuleKind::moe_router, ModuleKind::moe_preprocess},
        {ModuleKind::attn, ModuleKind::moe_router, ModuleKind::moe_preprocess},
        {ModuleKind::attn}})
    for (const char* impl : {"local", "transformer_engine"})
      engines.push_back({.impl = impl, .modules = modules, .warmup_steps = 1});
  spread(engines, kExpertLayouts, [&](const EngineConfig& engine, const Layout& layout) {
    std::string cut = engine.impl;
    for (const ModuleKind kind : engine.modules) cut += " " + std::string(workloads::name(kind));
    TwinSteps twins(all, layout, engine);
    for (std::int64_t i = 0; i < 3; ++i)
      EXPECT_EQ(difference(twins.step(i)), "") << cut << " step " << i;
    EXPECT_EQ(twins.witness.canaries, 0) << cut;
    EXPECT_TRUE(twins.witness.moved_tensors.empty()) << cut;
    twins.graph->drop_graphs();
  });
}

// Nothing waits for the host, so graphs may hold the dispatch and the experts too.
TEST(ExpertParallel, GraphsHoldAFlexDispatchAndReplayBitForBit) {
  using workloads::ModuleKind;
  ModelConfig config = small(dropless_experts().back());
  config.dropout = 0.1;
  ModelConfig recomputed = config;
  recomputed.recompute.parts = {workloads::RecomputedPart::moe_act,
                                workloads::RecomputedPart::mlp_norm};
  const std::vector<EngineConfig> engines = {{.impl = "full_iteration", .warmup_steps = 1},
                                             {.impl = "manual", .warmup_steps = 1},
                                             {.impl = "local", .warmup_steps = 1},
                                             {.impl = "transformer_engine", .warmup_steps = 1},
                                             {.impl = "callables", .warmup_steps = 1}};
  for (const ModelConfig& model : {config, recomputed})
    spread(engines, kExpertLayouts, [&](const EngineConfig& engine, const Layout& layout) {
      TwinSteps twins(model, layout, engine);
      for (std::int64_t i = 0; i < 3; ++i)
        EXPECT_EQ(difference(twins.step(i)), "") << engine.impl << " step " << i;
      EXPECT_GT(twins.graph->counters().replays, 0) << engine.impl;
      EXPECT_EQ(twins.witness.canaries, 0) << engine.impl;
      twins.graph->drop_graphs();
    });
}

/// Dropless and with a capacity, small enough for many replays.
std::vector<ModelConfig> overlapped_experts() {
  ModelConfig capped = small(experts());
  capped.linear_bias = false;
  capped.shared_expert_overlap = true;
  ModelConfig carried = capped;
  carried.dropless = true;
  ModelConfig flex = carried;
  flex.flex = true;
  return {capped, carried, flex};
}

TEST(SharedExpertOverlap, ChangesNoBitOfLossesAndGradients) {
  for (const ModelConfig& overlapped : overlapped_experts()) {
    ModelConfig plain = overlapped;
    plain.shared_expert_overlap = false;
    ranks->for_each_expert_layout([&](const Layout& layout) {
      auto& device = workloads::device_under_test();
      const c10::Stream stream = device.stream_from_pool();
      const c10::StreamGuard guard(stream);
      workloads::TrainStep overlapped_step(overlapped, layout, device, 1, {}),
          plain_step(plain, layout, device, 1, {});
      const auto batch = make_batch(plain, layout, 1, 0, device.torch_device());
      overlapped_step.forward_backward(batch);
      plain_step.forward_backward(batch);
      device.synchronize();
      EXPECT_EQ(workloads::on_host(overlapped_step.losses()),
                workloads::on_host(plain_step.losses()));
      const auto left = overlapped_step.gradients(), right = plain_step.gradients();
      for (std::size_t i = 0; i < left.size(); ++i)
        EXPECT_EQ(workloads::on_host(left[i].tensor), workloads::on_host(right[i].tensor))
            << left[i].name;
    });
  }
}

// If moe_router is captured, the shared expert is outside the graph; if moe, a layer or a step is
// captured, its stream forks inside the graph.
TEST(SharedExpertOverlap, ReplayEqualsEagerBitForBitUnderEveryEngineAndCut) {
  using workloads::ModuleKind;
  struct Cut {
    const char* impl;
    std::vector<ModuleKind> modules;
    bool dropless;
  };
  const std::vector<ModuleKind> router{ModuleKind::moe_router},
      parts{ModuleKind::moe_router, ModuleKind::moe_preprocess};
  for (const Cut& cut :
       {Cut{"full_iteration", {}, false}, Cut{"local", {}, false},
        Cut{"transformer_engine", {ModuleKind::moe}, false}, Cut{"local", router, true},
        Cut{"transformer_engine", parts, true}, Cut{"callables", parts, false}}) {
    ModelConfig config = overlapped_experts()[cut.dropless ? 1 : 0];
    config.dropout = 0.1;
    ranks->for_each_expert_layout([&](const Layout& layout) {
      const std::string name =
          std::string(cut.impl) +
          (cut.modules.empty() ? "" : " " + std::string(workloads::name(cut.modules.back())));
      TwinSteps twins(config, layout,
                      {.impl = cut.impl, .modules = cut.modules, .warmup_steps = 1});
      for (std::int64_t i = 0; i < 3; ++i)
        EXPECT_EQ(difference(twins.step(i)), "") << name << " step " << i;
      EXPECT_GT(twins.graph->counters().replays, 0) << name;
      EXPECT_EQ(twins.witness.canaries, 0) << name;
      twins.graph->drop_graphs();
    });
  }
}

TEST(SharedExpertOverlap, RecomputedExpertsRunItConcurrentlyWithTheDispatchAgain) {
  ModelConfig config = overlapped_experts()[0];
  config.recompute = workloads::selective({workloads::RecomputedPart::moe});
  ranks->for_each_expert_layout([&](const Layout& layout) {
    TwinSteps twins(config, layout, {.impl = "full_iteration", .warmup_steps = 1});
    for (std::int64_t i = 0; i < 3; ++i) EXPECT_EQ(difference(twins.step(i)), "") << "step " << i;
    twins.graph->drop_graphs();
  });
}

// The recompute exchanges tokens again and forks the stream of the shared expert again, while the
// graph of the router is replayed once.
TEST(RecomputeAfterTheRouter, ReplayEqualsEagerBitForBitInEveryDispatch) {
  using workloads::ModuleKind;
  ModelConfig gathered = overlapped_experts()[1];
  gathered.shared_expert_overlap = false;
  gathered.gather_tokens = true;
  for (ModelConfig config : {overlapped_experts()[0], overlapped_experts()[1], gathered}) {
    config.dropout = 0.1;
    config.recompute = workloads::selective(
        {workloads::RecomputedPart::moe, workloads::RecomputedPart::core_attn});
    config.recompute.after_router = true;
    std::vector<ModuleKind> modules{ModuleKind::moe_router};
    if (!config.gather_tokens) modules.push_back(ModuleKind::moe_preprocess);
    ranks->for_each_expert_layout([&](const Layout& layout) {
      TwinSteps twins(config, layout, {.impl = "local", .modules = modules});
      for (std::int64_t i = 0; i < 3; ++i) EXPECT_EQ(difference(twins.step(i)), "") << "step " << i;
      const auto parts = static_cast<std::int64_t>(modules.size());
      EXPECT_EQ(twins.graph->counters().launches_per_step,
                2 * parts * config.layers * config.microbatches);
      EXPECT_EQ(twins.witness.canaries, 0);
      twins.graph->drop_graphs();
    });
  }
}

TEST(SharedExpertOverlap, M140AStreamThatIsNotForkedFromTheCaptureIsRefused) {
  ranks->for_each_expert_layout([&](const Layout& layout) {
    TwinSteps twins(overlapped_experts()[0], layout, {.impl = "full_iteration", .warmup_steps = 1},
                    Fault::shared_expert_not_forked);
    EXPECT_EQ(difference(twins.step(0)), "");
    try {
      static_cast<void>(twins.step(1));
      ADD_FAILURE() << "the capture was not refused";
    } catch (const capture::DeviceError& error) {
      EXPECT_EQ(error.code, 905) << error.what();
    }
  });
}

TEST(Bf16Parallel, LossesAndGradientsAreNearTheSingleRankModelOnEveryLayout) {
  const ModelConfig config{
      .microbatches = 2, .linear_bias = true, .precision = workloads::Precision::bf16};
  // About 108 chained independent roundings to eight bits (derived in suites/case/reference.cpp).
  const double bound = 4 * std::sqrt(108.0) * std::ldexp(1.0, -9);
  ranks->for_each_layout(
      [&](const Layout& layout) { expect_equals_single_rank(config, layout, bound); });
}

TEST(Bf16Parallel, ReplayEqualsEagerBitForBit) {
  const ModelConfig config =
      small({.microbatches = 2,
             .dropout = 0.1,
             .recompute = workloads::selective({workloads::RecomputedPart::core_attn}),
             .precision = workloads::Precision::bf16,
             .optimizer = workloads::OptimizerKind::adam});
  ranks->for_each_layout([&](const Layout& layout) {
    TwinSteps twins(config, layout, {.impl = "manual", .warmup_steps = 1});
    for (std::int64_t i = 0; i < 3; ++i) EXPECT_EQ(difference(twins.step(i)), "") << "step " << i;
    twins.graph->drop_graphs();
  });
}

}  // namespace
}  // namespace graphproof::engines::expert_parallel_test
