// One test for each sentence of the contract in local.h, on the reference model. Tests that need
// other modules and schedules are in local_schedules_test.cpp.
#include <gtest/gtest.h>

#include <map>

#include "workloads/engines/modules/local.h"
#include "workloads/testing/refusal.h"
#include "workloads/testing/twin_steps.h"

namespace graphproof::engines::local_test {
namespace {

using workloads::ModelConfig;
using workloads::ModuleKind;
using Modules = std::vector<ModuleKind>;

constexpr std::int64_t kSteps = 5, kWarmup = 2;

ModelConfig model(double dropout, std::int64_t microbatches = 2) {
  ModelConfig config;
  config.microbatches = microbatches;
  config.linear_bias = config.qkv_bias = true;
  config.dropout = dropout;
  return config;
}

EngineConfig local(Modules modules = {}, PoolSharing pool = PoolSharing::single) {
  return {.impl = "local", .modules = std::move(modules), .pool = pool, .warmup_steps = kWarmup};
}

const std::map<std::string, Modules> kModuleSets{{"layer", {}},
                                                 {"attn", {ModuleKind::attn}},
                                                 {"mlp", {ModuleKind::mlp}},
                                                 {"attn_mlp", {ModuleKind::attn, ModuleKind::mlp}}};

std::int64_t parts_of_a_layer(const Modules& modules) {
  return modules.empty() ? 1 : static_cast<std::int64_t>(modules.size());
}

TEST(Local, ReplayEqualsEagerBitForBitForEveryModuleSetPoolAndNumberOfMicrobatches) {
  for (const auto& [name, modules] : kModuleSets)
    for (const PoolSharing pool :
         {PoolSharing::single, PoolSharing::per_microbatch, PoolSharing::per_graph})
      for (const std::int64_t microbatches : {1, 2, 4}) {
        // Pools do not depend on which parts are captured, so the finest division suffices.
        if (pool != PoolSharing::single && (modules.size() != 2 || microbatches != 2)) continue;
        const double dropout = microbatches == 1 ? 0.0 : 0.1;
        SCOPED_TRACE(name + " pool " + std::to_string(static_cast<int>(pool)) + " microbatches " +
                     std::to_string(microbatches));
        TwinSteps twins(model(dropout, microbatches), {}, local(modules, pool));
        for (std::int64_t i = 0; i < kSteps; ++i)
          EXPECT_EQ(difference(twins.step(i)), "") << "step " << i;
        EXPECT_EQ(difference(twins.step(0)), "") << "the recorded inputs last";
        EXPECT_EQ(twins.witness.canaries, 0);
        EXPECT_GT(twins.witness.canaries_poisoned, 0);
        EXPECT_TRUE(twins.witness.moved_tensors.empty());
        EXPECT_EQ(twins.graph_step().rng().states(), twins.eager_step().rng().states());
      }
}

TEST(Local, EveryFeatureOfTheStepIsReplayedBitForBitInEveryCut) {
  ModelConfig rich = model(0.1);
  rich.recompute = workloads::selective({workloads::RecomputedPart::core_attn});
  rich.precision = workloads::Precision::bf16;
  rich.optimizer = workloads::OptimizerKind::adam;
  ModelConfig experts = rich;
  experts.experts = 4;
  experts.topk = 2;
  experts.shared_expert = true;
  using workloads::RecomputedPart;
  ModelConfig again = rich, experts_again = experts;
  again.recompute = workloads::selective(
      {RecomputedPart::mlp, RecomputedPart::attention_norm, RecomputedPart::mlp_norm});
  experts_again.recompute = workloads::selective(
      {RecomputedPart::moe_act, RecomputedPart::mlp_norm, RecomputedPart::shared_experts});
  ModelConfig after_router = experts;
  after_router.recompute = workloads::selective(
      {RecomputedPart::moe, RecomputedPart::core_attn, RecomputedPart::mlp_norm});
  after_router.recompute.after_router = after_router.grad_accumulation_fusion = true;
  ModelConfig fused = again;
  fused.grad_accumulation_fusion = true;
  struct Row {
    const char* name;
    ModelConfig model;
    Modules modules;
    std::int64_t parts;
  };
  const std::vector<Row> rows{
      {"dense, layer", rich, {}, 1},
      {"dense, attn", rich, {ModuleKind::attn}, 1},
      {"dense, attn and mlp", rich, {ModuleKind::attn, ModuleKind::mlp}, 2},
      {"dense, mlp, with its parts again", again, {ModuleKind::mlp}, 1},
      {"dense, layer, weight gradients added where they are made", fused, {}, 1},
      {"experts, router and preprocess, with parts again",
       experts_again,
       {ModuleKind::moe_router, ModuleKind::moe_preprocess},
       2},
      {"recomputed experts after router and preprocess",
       after_router,
       {ModuleKind::moe_router, ModuleKind::moe_preprocess},
       2},
      {"recomputed experts after the router", after_router, {ModuleKind::moe_router}, 1},
      {"experts, layer", experts, {}, 1},
      {"experts, moe", experts, {ModuleKind::moe}, 1},
      {"experts, router", experts, {ModuleKind::moe_router}, 1},
      {"experts, router and preprocess",
       experts,
       {ModuleKind::moe_router, ModuleKind::moe_preprocess},
       2},
      {"experts, attn, router and preprocess",
       experts,
       {ModuleKind::attn, ModuleKind::moe_router, ModuleKind::moe_preprocess},
       3}};
  for (const Row& row : rows) {
    SCOPED_TRACE(row.name);
    TwinSteps twins(row.model, {}, local(row.modules));
    for (std::int64_t i = 0; i < 4; ++i) EXPECT_EQ(difference(twins.step(i)), "") << "step " << i;
    EXPECT_EQ(twins.witness.canaries, 0);
    EXPECT_TRUE(twins.witness.moved_tensors.empty());
    EXPECT_TRUE(twins.witness.changed_by.empty());
    EXPECT_EQ(twins.graph->counters().launches_per_step,
              2 * row.parts * row.model.layers * row.model.microbatches);
    EXPECT_EQ(twins.graph->counters().replays, 3 * twins.graph->counters().launches_per_step);
  }
}

TEST(Local, OneStepIsEagerAndEveryLaterOneNeedsTwoLaunchesForEachModuleAndMicrobatch) {
  for (const auto& [name, modules] : kModuleSets)
    for (const std::int64_t microbatches : {1, 4}) {
      SCOPED_TRACE(name + ", " + std::to_string(microbatches));
      TwinSteps twins(model(0, microbatches), {}, local(modules));
      const std::int64_t graphs = 2 * parts_of_a_layer(modules) * model(0).layers;
      for (std::int64_t i = 0; i < kSteps; ++i) {
        twins.step(i);
        const Counters counters = twins.graph->counters();
        EXPECT_EQ(counters.steps, i + 1);
        EXPECT_EQ(counters.eager, 1);
        EXPECT_EQ(counters.captures, graphs)
            << "one pair for each module for any number of microbatches";
        EXPECT_EQ(counters.graphs, graphs);
        EXPECT_EQ(counters.launches_per_step, graphs * microbatches);
        EXPECT_EQ(counters.replays, i * counters.launches_per_step);
        EXPECT_EQ(counters.fallbacks, 0);
        EXPECT_EQ(counters.out_of_order, 0);
      }
    }
}

TEST(Local, CapturesInExecutionOrderIntoOnePoolAndRunsNothing) {
  TwinSteps twins(model(0.1), {}, local({ModuleKind::attn, ModuleKind::mlp}));
  EXPECT_EQ(difference(twins.step(0)), "")
      << "masks, gradients and losses of the recorded step are still there";
  std::vector<std::string> order;
  for (const CaptureReport& report : twins.witness.reports) {
    order.push_back(report.graph);
    EXPECT_EQ(report.status, "ok");
    EXPECT_EQ(report.warmups, kWarmup);
    EXPECT_GT(report.census.total, 10);
    EXPECT_EQ(report.counter_before, (std::vector<std::int64_t>{2, 2}));
    EXPECT_EQ(report.counter_after, report.counter_before);
  }
  EXPECT_EQ(order, (std::vector<std::string>{"layers.0.attn.forward", "layers.0.mlp.forward",
                                             "layers.1.attn.forward", "layers.1.mlp.forward",
                                             "layers.1.mlp.backward", "layers.1.attn.backward",
                                             "layers.0.mlp.backward", "layers.0.attn.backward"}));
  EXPECT_TRUE(twins.witness.changed_by.empty()) << twins.witness.changed_by.front();
  EXPECT_EQ(twins.graph_step().rng().states(), twins.eager_step().rng().states());
}

TEST(Local, AModuleReadsTheOutputOfThePreviousOneInPlace) {
  TwinSteps twins(model(0), {}, local({ModuleKind::attn, ModuleKind::mlp}));
  twins.step(0);
  twins.step(1);
  const auto address = [&](const std::string& graph, const std::string& name) {
    return twins.witness.first_address.at(graph).at(name);
  };
  EXPECT_EQ(address("layers.0.mlp.forward", "input.0"),
            address("layers.0.attn.forward", "output.0"));
  EXPECT_EQ(address("layers.1.attn.forward", "input.0"),
            address("layers.0.mlp.forward", "output.0"));
  EXPECT_EQ(address("layers.0.mlp.backward", "grad_output.0"),
            address("layers.1.attn.backward", "grad_input.0"));
  EXPECT_NE(address("layers.0.attn.forward", "input.0"),
            address("layers.0.attn.forward", "output.0"));
}

TEST(Local, WorksInEveryCaptureModeAndOnBothAutogradThreads) {
  for (const auto mode : {capture::CaptureMode::global, capture::CaptureMode::thread_local_,
                          capture::CaptureMode::relaxed})
    for (const bool threads : {false, true}) {
      EngineConfig config = local();
      config.capture_mode = mode;
      TwinSteps twins(model(0.1), {}, config);
      twins.device().autograd_threads(threads);
      for (std::int64_t i = 0; i < 3; ++i)
        EXPECT_EQ(difference(twins.step(i)), "")
            << "mode " << static_cast<int>(mode) << " threads " << threads;
      EXPECT_EQ(twins.witness.reports.at(0).mode, mode);
      twins.device().autograd_threads(false);
    }
}

TEST(Local, WarmupPassesMayBeNone) {
  EngineConfig config = local();
  config.warmup_steps = 0;
  TwinSteps twins(model(0.1), {}, config);
  for (std::int64_t i = 0; i < 3; ++i) EXPECT_EQ(difference(twins.step(i)), "") << "step " << i;
  EXPECT_EQ(twins.witness.reports.at(0).warmups, 0);
}

TEST(Local, LossesHandedOutStayAndOutputsAreTheLatest) {
  TwinSteps twins(model(0), {}, local());
  for (std::int64_t i = 0; i < 2; ++i) twins.step(i);
  const at::Tensor kept = twins.graph->losses();
  const auto before = workloads::on_host(kept);
  const auto alias = twins.graph->outputs();
  twins.step(2);
  EXPECT_EQ(workloads::on_host(kept), before);
  EXPECT_NE(workloads::on_host(twins.graph->losses()), before);
  EXPECT_TRUE(fixtures::compare(alias, twins.graph->outputs()).equal);
}

TEST(Local, DroppedGraphsGiveTheirMemoryBackAndTakeNoMoreSteps) {
  TwinSteps twins(model(0), {}, local());
  twins.device().empty_cache();  // the cached memory of earlier tests
  const auto pool_before = twins.device().memory().pool;
  for (std::int64_t i = 0; i < 3; ++i) twins.step(i);
  EXPECT_GT(twins.device().memory().pool, pool_before);
  twins.graph->drop_graphs();
  twins.graph->drop_graphs();
  twins.device().empty_cache();
  EXPECT_EQ(twins.device().memory().pool, pool_before);
  EXPECT_EQ(twins.graph->counters().replays, 2 * twins.graph->counters().launches_per_step);
  EXPECT_EQ(refusal<std::logic_error>([&] { twins.graph->step(twins.batch(0), 0.1); }),
            "engine: got step() after drop_graphs(); want no more steps; why: the captured graphs "
            "and their memory are "
            "gone; next: make a new engine");
}

TEST(Local, TheFloorTrainsAsTheEngineDoesWithTheSameLaunches) {
  for (const auto& [name, modules] : kModuleSets) {
    SCOPED_TRACE(name);
    TwinSteps twins(model(0.1), {}, local(modules));
    for (std::int64_t i = 0; i < 2; ++i) EXPECT_EQ(difference(twins.step(i)), "");
    auto& engine = dynamic_cast<Local&>(*twins.graph);
    const Counters before = engine.counters();
    twins.eager->step(twins.batch(2), 0.05);
    engine.floor_step(twins.batch(2), 0.05);
    twins.device().synchronize();
    EXPECT_EQ(difference(fixtures::compare(twins.eager->outputs(), engine.outputs())), "");
    EXPECT_EQ(engine.counters().replays - before.replays, before.launches_per_step);
    EXPECT_EQ(difference(twins.step(3)), "") << "the engine continues afterwards";
  }
}

TEST(Local, TheFloorNeedsACapture) {
  TwinSteps twins(model(0), {}, local());
  EXPECT_EQ(refusal<std::logic_error>(
                [&] { dynamic_cast<Local&>(*twins.graph).floor_step(twins.batch(0), 0.1); }),
            "local: got floor_step() before any capture; want a step() first; why: the floor "
            "replays its graphs; next: "
            "run one step");
}

TEST(Local, RefusesThePlainTracker) {
  auto& device = workloads::device_under_test();
  const c10::Stream stream = device.stream_from_pool();
  const c10::StreamGuard guard(stream);
  workloads::TrainStep step(model(0.1), {}, device, 1, {}, fixtures::RngBackend::plain);
  EXPECT_EQ(
      refusal<std::invalid_argument>([&] { make_engine(local(), device, stream, step, nullptr); }),
      "local: got rng_tracker plain; want graph_safe; why: rule R154, a capture can neither read "
      "nor set a "
      "generator's state, so the plain tracker can't change regions inside it; next: set "
      "rng_tracker to graph_safe");
}

}  // namespace
}  // namespace graphproof::engines::local_test
