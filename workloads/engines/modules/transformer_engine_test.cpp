// One test for each sentence of the contract in transformer_engine.h, on the reference model. Tests
// that need other modules and schedules are in transformer_engine_schedules_test.cpp.
#include <gtest/gtest.h>

#include <map>

#include "workloads/engines/modules/transformer_engine.h"
#include "workloads/testing/refusal.h"
#include "workloads/testing/twin_steps.h"

namespace graphproof::engines::transformer_engine_test {
namespace {

using fixtures::Fault;

using workloads::ModelConfig;
using workloads::ModuleKind;
using Modules = std::vector<ModuleKind>;

constexpr std::int64_t kWarmup = 2, kSteps = 5;

// Small, because products in bf16 are slow on a CPU.
ModelConfig model(double dropout, std::int64_t microbatches = 2) {
  ModelConfig config{
      .hidden = 32, .heads = 4, .kv_groups = 2, .ffn = 64, .vocab = 64, .seq_length = 8};
  config.microbatches = microbatches;
  config.linear_bias = config.qkv_bias = true;
  config.dropout = dropout;
  return config;
}

ModelConfig experts(double dropout) {
  ModelConfig config = model(dropout);
  config.experts = 4;
  config.topk = 2;
  config.shared_expert = true;
  return config;
}

EngineConfig te(Modules modules = {}) {
  return {.impl = "transformer_engine", .modules = std::move(modules), .warmup_steps = kWarmup};
}

struct Cut {
  const char* name;
  ModelConfig model;
  Modules modules;
};
std::vector<Cut> cuts(double dropout) {
  return {{"layer", model(dropout), {}},
          {"attn", model(dropout), {ModuleKind::attn}},
          {"mlp", model(dropout), {ModuleKind::mlp}},
          {"attn+mlp", model(dropout), {ModuleKind::attn, ModuleKind::mlp}},
          {"layer", experts(dropout), {}},
          {"moe", experts(dropout), {ModuleKind::moe}},
          {"attn+moe", experts(dropout), {ModuleKind::attn, ModuleKind::moe}},
          {"moe_router", experts(dropout), {ModuleKind::moe_router}},
          {"moe_router+moe_preprocess",
           experts(dropout),
           {ModuleKind::moe_router, ModuleKind::moe_preprocess}},
          {"attn+moe_router", experts(dropout), {ModuleKind::attn, ModuleKind::moe_router}},
          {"attn+moe_router+moe_preprocess",
           experts(dropout),
           {ModuleKind::attn, ModuleKind::moe_router, ModuleKind::moe_preprocess}}};
}

TEST(TransformerEngine, ReplayEqualsEagerBitForBitForEveryModuleSetAsOneGraphPairALayer) {
  for (const Cut& cut : cuts(0.1)) {
    SCOPED_TRACE(cut.name);
    TwinSteps twins(cut.model, {}, te(cut.modules));
    for (std::int64_t i = 0; i < kSteps; ++i)
      EXPECT_EQ(difference(twins.step(i)), "") << "step " << i;
    EXPECT_EQ(difference(twins.step(kWarmup)), "") << "the inputs of the capture last";
    EXPECT_EQ(twins.witness.canaries, 0);
    EXPECT_GT(twins.witness.canaries_poisoned, 0);
    EXPECT_TRUE(twins.witness.moved_tensors.empty()) << twins.witness.moved_tensors.front();
    EXPECT_TRUE(twins.witness.changed_by.empty()) << twins.witness.changed_by.front();
    EXPECT_EQ(twins.graph_step().rng().states(), twins.eager_step().rng().states());
    EXPECT_EQ(twins.witness.reports.at(0).graph, "layers.0." + std::string(cut.name) + ".forward");
    EXPECT_EQ(twins.graph->counters().graphs, 2 * cut.model.layers);
  }
}

TEST(TransformerEngine, EveryFeatureOfTheStepIsReplayedBitForBit) {
  for (const Cut& cut : cuts(0.1)) {
    SCOPED_TRACE(cut.name);
    ModelConfig rich = cut.model;
    using enum workloads::RecomputedPart;
    rich.recompute =
        rich.experts > 0
            ? workloads::selective({core_attn, moe_act, attention_norm, mlp_norm, shared_experts})
            : workloads::selective({core_attn, mlp, attention_norm, mlp_norm});
    rich.precision = workloads::Precision::bf16;
    rich.optimizer = workloads::OptimizerKind::adam;
    TwinSteps twins(rich, {}, te(cut.modules));
    for (std::int64_t i = 0; i < kWarmup + 2; ++i)
      EXPECT_EQ(difference(twins.step(i)), "") << "step " << i;
    EXPECT_EQ(twins.witness.canaries, 0);
  }
}

TEST(TransformerEngine,
     WarmupStepsAreEagerAndEveryLaterOneNeedsTwoLaunchesForEachLayerAndMicrobatch) {
  for (const std::int64_t microbatches : {1, 4}) {
    TwinSteps twins(model(0, microbatches), {}, te({ModuleKind::attn, ModuleKind::mlp}));
    for (std::int64_t i = 0; i < kSteps; ++i) {
      EXPECT_EQ(difference(twins.step(i)), "") << "step " << i;
      const Counters counters = twins.graph->counters();
      const std::int64_t replayed = std::max<std::int64_t>(0, i + 1 - kWarmup),
                         graphs = i < kWarmup ? 0 : 4;
      EXPECT_EQ(counters.steps, i + 1);
      EXPECT_EQ(counters.eager, std::min(i + 1, kWarmup));
      EXPECT_EQ(counters.captures, graphs)
          << "one pair for each layer for any number of microbatches";
      EXPECT_EQ(counters.graphs, graphs);
      EXPECT_EQ(counters.launches_per_step, graphs * microbatches);
      EXPECT_EQ(counters.replays, replayed * 4 * microbatches);
      EXPECT_EQ(counters.fallbacks, 0);
      EXPECT_EQ(counters.out_of_order, 0);
    }
  }
}

TEST(TransformerEngine, CapturesAheadOfTheStepInTheOrderOfTheScheduleAndRunsNothing) {
  TwinSteps twins(model(0.1), {}, te({ModuleKind::attn}));
  for (std::int64_t i = 0; i <= kWarmup; ++i)
    EXPECT_EQ(difference(twins.step(i)), "") << "step " << i;
  std::vector<std::string> order;
  for (const CaptureReport& report : twins.witness.reports) {
    order.push_back(report.graph);
    EXPECT_EQ(report.status, "ok");
    EXPECT_EQ(report.warmups, 10) << "four eager passes in two steps, six before the captures";
    EXPECT_GT(report.census.total, 10);
    EXPECT_EQ(report.counter_before, (std::vector<std::int64_t>{4, 4})) << "before the third step";
    EXPECT_EQ(report.counter_after, report.counter_before);
  }
  EXPECT_EQ(order, (std::vector<std::string>{"layers.0.attn.forward", "layers.1.attn.forward",
                                             "layers.1.attn.backward", "layers.0.attn.backward"}));
}

TEST(TransformerEngine, WarmUpPassesBringTheEagerRunsToTenAndAreOneAtLeast) {
  EXPECT_EQ(warm_up_passes(0, 1, 1), 10);
  EXPECT_EQ(warm_up_passes(3, 1, 1), 7);
  EXPECT_EQ(warm_up_passes(2, 4, 4), 1) << "half a round is a round";
  EXPECT_EQ(warm_up_passes(1, 1, 4), 3);
  EXPECT_EQ(warm_up_passes(2, 5, 1), 1);
  EXPECT_EQ(warm_up_passes(3, 8, 8), 1);
}

TEST(TransformerEngine, WithoutEagerStepsTheFirstOneIsRehearsedAndPutBack) {
  for (const Cut& cut : {cuts(0.1).front(), cuts(0.1).back()}) {
    SCOPED_TRACE(cut.name);
    EngineConfig config = te(cut.modules);
    config.warmup_steps = 0;
    TwinSteps twins(cut.model, {}, config);
    for (std::int64_t i = 0; i < 3; ++i) EXPECT_EQ(difference(twins.step(i)), "") << "step " << i;
    EXPECT_EQ(twins.graph_step().rng().states(), twins.eager_step().rng().states());
    EXPECT_EQ(workloads::on_host(twins.graph_step().layer_counter()),
              workloads::on_host(twins.eager_step().layer_counter()));
    EXPECT_EQ(twins.graph->counters().replays, 3 * twins.graph->counters().launches_per_step);
    EXPECT_EQ(twins.witness.reports.at(0).warmups, 10);
  }
}

TEST(TransformerEngine,
     StaticInputsLieApartFromEveryResultAndGradientsOfOutputsAreSharedBySignature) {
  TwinSteps twins(model(0), {}, te());
  for (std::int64_t i = 0; i <= kWarmup; ++i) twins.step(i);
  const auto address = [&](const std::string& graph, const std::string& name) {
    return twins.witness.first_address.at(graph).at(name);
  };
  EXPECT_NE(address("layers.1.layer.forward", "input.0"),
            address("layers.0.layer.forward", "output.0"));
  EXPECT_NE(address("layers.1.layer.forward", "input.0"),
            address("layers.0.layer.forward", "input.0"));
  EXPECT_EQ(address("layers.1.layer.backward", "grad_output.0"),
            address("layers.0.layer.backward", "grad_output.0"));
  EXPECT_NE(address("layers.0.layer.backward", "grad_output.0"),
            address("layers.1.layer.backward", "grad_input.0"));
}

TEST(TransformerEngine, GradientsOfParametersAreAddedByAutogradOutsideTheGraph) {
  TwinSteps twins(model(0), {}, te());
  for (std::int64_t i = 0; i <= kWarmup; ++i) twins.step(i);
  for (const auto& [graph, statics] : twins.witness.first_address) {
    if (graph == "all") continue;
    for (const auto& [name, address] : statics)
      EXPECT_FALSE(name.starts_with("grad:")) << graph << " holds " << name;
  }
  EXPECT_EQ(twins.witness.first_address.at("layers.0.layer.backward").count("weight_gradient.0"),
            1u);
}

TEST(TransformerEngine, ACallWithoutGradientsRunsEagerly) {
  TwinSteps twins(model(0), {}, te());
  for (std::int64_t i = 0; i <= kWarmup; ++i) twins.step(i);
  const std::int64_t replays = twins.graph->counters().replays;
  bool ran = false;
  {
    const at::NoGradGuard no_grad;
    dynamic_cast<AheadOfTime&>(*twins.graph)
        .run({ModuleKind::layer, 0, 0}, {}, {}, [&](const auto& inputs) {
          ran = true;
          return inputs;
        });
  }
  EXPECT_TRUE(ran);
  EXPECT_EQ(twins.graph->counters().replays, replays);
}

TEST(TransformerEngine, WorksInEveryCaptureModeAndOnBothAutogradThreads) {
  for (const auto mode : {capture::CaptureMode::global, capture::CaptureMode::thread_local_,
                          capture::CaptureMode::relaxed})
    for (const bool threads : {false, true}) {
      EngineConfig config = te();
      config.capture_mode = mode;
      TwinSteps twins(model(0.1), {}, config);
      twins.device().autograd_threads(threads);
      for (std::int64_t i = 0; i < kWarmup + 2; ++i)
        EXPECT_EQ(difference(twins.step(i)), "")
            << "mode " << static_cast<int>(mode) << " threads " << threads;
      EXPECT_EQ(twins.witness.reports.at(0).mode, mode);
      twins.device().autograd_threads(false);
    }
}

TEST(TransformerEngine, LossesHandedOutStayAndOutputsAreTheLatest) {
  TwinSteps twins(model(0), {}, te());
  for (std::int64_t i = 0; i <= kWarmup; ++i) twins.step(i);
  const at::Tensor kept = twins.graph->losses();
  const auto before = workloads::on_host(kept);
  const auto alias = twins.graph->outputs();
  twins.step(kWarmup + 1);
  EXPECT_EQ(workloads::on_host(kept), before);
  EXPECT_NE(workloads::on_host(twins.graph->losses()), before);
  EXPECT_TRUE(fixtures::compare(alias, twins.graph->outputs()).equal);
}

TEST(TransformerEngine, DroppedGraphsGiveTheirMemoryBackAndTakeNoMoreSteps) {
  TwinSteps twins(model(0), {}, te());
  twins.device().empty_cache();  // the cached memory of earlier tests
  const auto pool_before = twins.device().memory().pool;
  for (std::int64_t i = 0; i < kWarmup + 2; ++i) twins.step(i);
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

TEST(TransformerEngine, AFailedCaptureLeavesNoGraphAndTheNextStepTriesAgain) {
  if (workloads::device_under_test().name() != "sim")
    return;  // LibTorch 2.11 on CUDA is unusable after a failed capture (pytorch#180395)
  TwinSteps twins(model(0), {}, te(), Fault::host_sync_in_capture);
  for (std::int64_t i = 0; i < kWarmup; ++i) EXPECT_EQ(difference(twins.step(i)), "");
  for (const int attempt : {1, 2}) {
    try {
      twins.graph->step(twins.batch(kWarmup), 0.1);
      FAIL() << "captured";
    } catch (const capture::DeviceError& error) {
      EXPECT_EQ(error.code, 900);
      EXPECT_EQ(error.call, "aten::_local_scalar_dense");
    }
    EXPECT_EQ(twins.graph->counters().graphs, 0);
    EXPECT_EQ(twins.graph->counters().captures, 2 * attempt) << "layer 0, and layer 1 that looks";
  }
}

TEST(TransformerEngine, TheEffectsOfItsWarmUpReachTheStepWhereTheyAreNotPutBack) {
  TwinSteps twins(model(0.1), {}, te(), Fault::warm_up_not_undone);
  for (std::int64_t i = 0; i < kWarmup; ++i) EXPECT_EQ(difference(twins.step(i)), "");
  EXPECT_NE(difference(twins.step(kWarmup)), "");
  EXPECT_EQ(twins.witness.changed_by, (std::vector<std::string>{"layers.0.layer.forward"}));
}

TEST(TransformerEngine, RefusesThePlainTrackerSeveralPoolsAndAModelWithoutItsModules) {
  auto& device = workloads::device_under_test();
  const c10::Stream stream = device.stream_from_pool();
  const c10::StreamGuard guard(stream);
  workloads::TrainStep plain(model(0.1), {}, device, 1, {}, fixtures::RngBackend::plain);
  EXPECT_EQ(
      refusal<std::invalid_argument>([&] { make_engine(te(), device, stream, plain, nullptr); }),
      "transformer_engine: got rng_tracker plain; want graph_safe; why: rule B08, a capture can "
      "neither read nor set a "
      "generator's state, so the plain tracker can't change regions inside it; next: set "
      "rng_tracker to graph_safe");
  workloads::TrainStep step(model(0), {}, device, 1, {});
  EngineConfig config = te();
  config.pool = PoolSharing::per_graph;
  EXPECT_EQ(
      refusal<std::invalid_argument>([&] { make_engine(config, device, stream, step, nullptr); }),
      "transformer_engine: got pools of their own for its graphs; want one; why: all graphs of one "
      "call of "
      "make_graphed_callables share one; next: set pool to single");
  const auto engine =
      make_engine(te({ModuleKind::moe, ModuleKind::moe_router}), device, stream, step, nullptr);
  const auto batch = workloads::make_batch(model(0), {}, 1, 0, device.torch_device());
  for (std::int64_t i = 0; i < kWarmup; ++i) engine->step(batch, 0.1);
  EXPECT_EQ(
      refusal<std::invalid_argument>([&] { engine->step(batch, 0.1); }),
      "transformer_engine: got a model without moe, moe_router; want at least one such part; "
      "why: nothing would be "
      "captured although the case requests captures; next: choose modules that the model has");
}

}  // namespace
}  // namespace graphproof::engines::transformer_engine_test
