// Weights rounded once a step and kept for its microbatches, under every engine on one rank: the
// sentences about them in the contracts of local.h, transformer_engine.h, callables.h,
// full_iteration.h and manual.h, and their faults. For several ranks see fp8_layouts_test.cpp.
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "workloads/faults/plant.h"
#include "workloads/layers/fp8_weights.h"
#include "workloads/testing/small_model.h"
#include "workloads/testing/twin_steps.h"
#include "workloads/training/checkpoint.h"

namespace graphproof::engines::fp8_weights_test {
namespace {

using fixtures::Fault;

using workloads::ModelConfig;
using workloads::ModuleKind;
using workloads::on_host;
using Modules = std::vector<ModuleKind>;

constexpr std::int64_t kWarmup = 1, kSteps = 4, kMicrobatches = 2, kLayers = 2;

ModelConfig dense() {
  return small({.layers = kLayers,
                .microbatches = kMicrobatches,
                .linear_bias = true,
                .dropout = 0.1,
                .fp8_weights = true});
}
ModelConfig with_experts() {
  ModelConfig config = dense();
  config.experts = 4;
  config.topk = 2;
  config.shared_expert = true;
  return config;
}
ModelConfig hybrid() {
  ModelConfig config = dense();
  config.hybrid = true;
  return config;
}

EngineConfig engine(const std::string& impl, Modules modules = {}) {
  return {.impl = impl, .modules = std::move(modules), .warmup_steps = kWarmup};
}

std::vector<float> ledger(workloads::TrainStep& step, const std::string& name) {
  for (const auto& [other, tensor] : step.ledgers())
    if (other == name) return on_host(tensor);
  ADD_FAILURE() << "no ledger " << name;
  return {};
}

void expect_equal_steps(TwinSteps& twins) {
  for (std::int64_t i = 0; i < kSteps; ++i)
    EXPECT_EQ(difference(twins.step(i)), "") << "step " << i;
  EXPECT_EQ(difference(twins.step(kWarmup)), "") << "the inputs of the capture last";
  EXPECT_GT(twins.graph->counters().replays, 0);
  EXPECT_EQ(twins.witness.canaries, 0);
  EXPECT_TRUE(twins.witness.moved_tensors.empty());
  EXPECT_TRUE(twins.witness.changed_by.empty()) << "warm-up leaves copies and counts as they were";
}

// The compared tensors include the copies themselves and how often each layer made them.
TEST(Fp8Weights, AreReplayedBitForBitByEveryEngineInEveryCut) {
  struct Row {
    const char* name;
    ModelConfig model;
    std::string impl;
    Modules modules;
  };
  ModelConfig again = dense(), fused = dense(), bf16 = dense(), ends = dense(),
              first_not_captured = hybrid();
  again.recompute =
      workloads::selective({workloads::RecomputedPart::mlp, workloads::RecomputedPart::core_attn});
  fused.grad_accumulation_fusion = true;
  bf16.precision = workloads::Precision::bf16;
  ends.first_last_layers_bf16 = true;
  ends.layers = 3;
  const Modules both{ModuleKind::attn, ModuleKind::mlp};
  std::vector<Row> rows;
  for (const char* impl : {"local", "transformer_engine", "callables"}) {
    rows.push_back({"whole layers", dense(), impl, {}});
    rows.push_back({"recompute", again, impl, both});
  }
  // The common part of callables and transformer_engine is tested with the latter.
  for (const char* impl : {"local", "transformer_engine"}) {
    rows.push_back({"both", dense(), impl, both});
    rows.push_back({"all but the ends", ends, impl, both});
    rows.push_back(
        {"a first layer that is not captured", first_not_captured, impl, {ModuleKind::attn}});
    rows.push_back(
        {"shared expert", with_experts(), impl, {ModuleKind::attn, ModuleKind::moe_router}});
    rows.push_back({"attention", dense(), impl, {ModuleKind::attn}});
    rows.push_back({"MLP", dense(), impl, {ModuleKind::mlp}});
    rows.push_back({"fused", fused, impl, {}});
    rows.push_back({"bf16", bf16, impl, {}});
    rows.push_back({"mamba", hybrid(), impl, {ModuleKind::mamba}});
    rows.push_back({"experts", with_experts(), impl, {}});
  }
  ModelConfig overlapped_expert = with_experts();
  overlapped_expert.shared_expert_overlap = true;
  rows.push_back({"shared expert on a stream of its own", overlapped_expert, "local", {}});
  rows.push_back({"shared expert on a stream of its own", overlapped_expert, "full_iteration", {}});
  for (const char* impl : {"manual", "full_iteration"})
    for (const ModelConfig& model : {dense(), again, ends, hybrid(), with_experts()})
      rows.push_back({"", model, impl, {}});
  for (const Row& row : rows) {
    SCOPED_TRACE(row.impl + ", " + row.name);
    TwinSteps twins(row.model, {}, engine(row.impl, row.modules));
    expect_equal_steps(twins);
    twins.graph->drop_graphs();
  }
}

/// Records the flag before each replay.
struct FlagWitness : Observer {
  explicit FlagWitness(workloads::TrainStep& step) : step(step) {}
  void before_replay(const std::string& graph, const std::vector<NamedTensor>&,
                     const std::vector<NamedTensor>&) override {
    if (graph.ends_with(".forward")) seen.push_back(on_host(step.first_microbatch())[0] != 0);
  }
  workloads::TrainStep& step;
  std::vector<bool> seen;
};

/// A single step under an engine.
struct Watched {
  Watched(const ModelConfig& config, const EngineConfig& engine_config, Fault fault = Fault::none)
      : device(workloads::device_under_test()),
        stream(device.stream_from_pool()),
        guard(stream),
        model(config),
        step(config, {}, device, TwinSteps::kSeed, faults::plant(fault)),
        witness(step),
        engine(make_engine(engine_config, device, stream, step, &witness)) {}
  void run(std::int64_t first, std::int64_t end) {
    const c10::StreamGuard here(
        stream);  // batches are made on the current stream, which may be that of another step
    for (std::int64_t i = first; i < end; ++i)
      engine->step(make_batch(model, {}, TwinSteps::kSeed, i, device.torch_device()), 0.1);
    device.synchronize();
  }
  capture::Device& device;
  c10::Stream stream;
  c10::StreamGuard guard;
  ModelConfig model;
  workloads::TrainStep step;
  FlagWitness witness;
  std::unique_ptr<Engine> engine;
};

TEST(Fp8Weights, GetTheFlagOfTheFirstMicrobatchOutsideTheGraphsBeforeEachReplay) {
  for (const char* impl : {"local", "transformer_engine", "callables"})
    for (const ModelConfig& model : {dense(), hybrid()}) {
      Watched watched(model, engine(impl, model.hybrid ? Modules{ModuleKind::attn} : Modules{}));
      watched.run(0, kWarmup + 1);
      watched.witness.seen.clear();
      watched.run(kWarmup + 1, kWarmup + 3);
      const std::size_t captured = model.hybrid ? 1 : 2;
      std::vector<bool> wanted;
      for (int step = 0; step < 2; ++step)
        for (std::int64_t m = 0; m < kMicrobatches; ++m)
          wanted.insert(wanted.end(), captured, m == 0);
      EXPECT_EQ(watched.witness.seen, wanted) << impl;
      watched.engine->drop_graphs();
    }
}

TEST(Fp8Weights, NeedNoFlagAtAReplayIfOneGraphHoldsAllMicrobatches) {
  for (const char* impl : {"manual", "full_iteration"}) {
    Watched watched(dense(), engine(impl));
    for (const bool first : {false, true}) {
      watched.step.set_first_microbatch(first);
      watched.run(first ? kWarmup + 1 : 0, first ? kWarmup + 2 : kWarmup + 1);
      EXPECT_EQ(on_host(workloads::copies_made(watched.step.ledgers())),
                std::vector<float>(kLayers, 4))
          << impl << ": once a step, regardless of the flag";
    }
    watched.engine->drop_graphs();
  }
}

TEST(Fp8Weights, TrainOnAfterEvaluationUnderEveryEngine) {
  for (const char* impl :
       {"manual", "full_iteration", "local", "transformer_engine", "callables"}) {
    TwinSteps twins(dense(), {}, engine(impl));
    for (std::int64_t i = 0; i < kWarmup + 2; ++i)
      EXPECT_EQ(difference(twins.step(i)), "") << impl << " step " << i;
    for (std::int64_t i = 10; i < 10 + kWarmup + 2; ++i) {
      const auto batch = twins.batch(i);
      twins.eager->evaluate(batch);
      twins.graph->evaluate(batch);
      EXPECT_EQ(on_host(twins.graph_step().evaluation_losses()),
                on_host(twins.eager_step().evaluation_losses()))
          << impl << " batch " << i;
    }
    for (std::int64_t i = kWarmup + 2; i < kSteps + 1; ++i)
      EXPECT_EQ(difference(twins.step(i)), "") << impl << " step " << i;
    twins.graph->drop_graphs();
  }
}

TEST(Fp8Weights, AreMadeAgainByTheFirstReplayAfterACheckpointIsLoadedUnderLiveGraphs) {
  for (const char* impl :
       {"manual", "full_iteration", "local", "transformer_engine", "callables"}) {
    ModelConfig model = dense();
    model.dropout = 0;
    Watched watched(model, engine(impl));
    watched.run(0, kWarmup + 1);
    const workloads::Checkpoint checkpoint(watched.step);
    std::vector<std::vector<float>> losses;
    for (int time = 0; time < 2; ++time) {
      watched.run(kWarmup + 1, kWarmup + 4);
      losses.push_back(on_host(watched.step.losses()));
      checkpoint.load_into(watched.step);
    }
    EXPECT_EQ(losses[1], losses[0]) << impl;
    watched.engine->drop_graphs();
  }
}

TEST(Fp8Weights, AtTheSpeedFloorAreThoseOfTheStep) {
  for (const char* impl : {"local", "transformer_engine", "callables", "full_iteration"}) {
    Watched stepped(dense(), engine(impl)), floored(dense(), engine(impl));
    stepped.run(0, kSteps);
    floored.run(0, kWarmup + 1);
    for (std::int64_t i = kWarmup + 1; i < kSteps; ++i)
      floored.engine->floor_step(
          make_batch(dense(), {}, TwinSteps::kSeed, i, floored.device.torch_device()), 0.1);
    floored.device.synchronize();
    for (const char* name : {"fp8:made", "fp8:layers.1.mlp.up.weight"})
      EXPECT_EQ(ledger(floored.step, name), ledger(stepped.step, name)) << impl;
    EXPECT_EQ(on_host(floored.step.losses()), on_host(stepped.step.losses())) << impl;
    stepped.engine->drop_graphs();
    floored.engine->drop_graphs();
  }
}

TEST(Fp8WeightsFaults, M80MakesThemInEveryMicrobatchAndChangesNoNumber) {
  for (const char* impl : {"local", "transformer_engine", "callables"}) {
    Watched sound(dense(), engine(impl)),
        faulty(dense(), engine(impl), Fault::first_microbatch_flag_by_value);
    for (Watched* watched : {&sound, &faulty}) watched->run(0, kSteps);
    EXPECT_EQ(on_host(workloads::copies_made(sound.step.ledgers())), std::vector<float>(kLayers, 4))
        << impl;
    EXPECT_EQ(on_host(workloads::copies_made(faulty.step.ledgers())),
              std::vector<float>(kLayers, 4 * kMicrobatches))
        << impl;
    EXPECT_EQ(on_host(faulty.step.losses()), on_host(sound.step.losses())) << impl;
    EXPECT_EQ(ledger(faulty.step, "fp8:layers.0.mlp.up.weight"),
              ledger(sound.step, "fp8:layers.0.mlp.up.weight"))
        << impl;
    for (Watched* watched : {&sound, &faulty}) watched->engine->drop_graphs();
  }
}

TEST(Fp8WeightsFaults, M160ComputesWithTheCopiesOfTheLastEagerStep) {
  for (const char* impl : {"local", "transformer_engine", "callables"}) {
    ModelConfig model = dense();
    Watched sound(model, engine(impl)),
        faulty(model, engine(impl), Fault::first_microbatch_flag_frozen_false);
    const std::int64_t eager = std::string(impl) == "local" ? 1 : kWarmup;
    for (Watched* watched : {&sound, &faulty}) watched->run(0, eager);
    const auto old = ledger(sound.step, "fp8:layers.0.mlp.up.weight");
    for (Watched* watched : {&sound, &faulty}) watched->run(eager, kSteps);
    EXPECT_EQ(ledger(faulty.step, "fp8:layers.0.mlp.up.weight"), old) << impl;
    EXPECT_NE(ledger(sound.step, "fp8:layers.0.mlp.up.weight"), old) << impl;
    EXPECT_EQ(on_host(workloads::copies_made(faulty.step.ledgers())),
              std::vector<float>(kLayers, 0))
        << impl;
    EXPECT_NE(on_host(faulty.step.losses()), on_host(sound.step.losses())) << impl;
    for (Watched* watched : {&sound, &faulty}) watched->engine->drop_graphs();
  }
}

TEST(Fp8WeightsFaults, M161RoundsTheEndsOfTheModelInGraphsAlone) {
  ModelConfig model = dense();
  model.layers = 3;
  model.first_last_layers_bf16 = true;
  for (const char* impl :
       {"local", "transformer_engine", "callables", "manual", "full_iteration"}) {
    Watched sound(model, engine("none")),
        faulty(model, engine(impl), Fault::unrounded_layers_rounded_in_capture);
    const std::int64_t eager = traits_of(impl).eager_steps(kWarmup);
    for (std::int64_t i = 0; i < kSteps; ++i) {
      for (Watched* watched : {&sound, &faulty}) watched->run(i, i + 1);
      EXPECT_EQ(on_host(faulty.step.losses()) == on_host(sound.step.losses()), i < eager)
          << impl << " step " << i;
    }
    EXPECT_EQ(on_host(workloads::copies_made(faulty.step.ledgers())), std::vector<float>(3, 4))
        << impl;
    EXPECT_EQ(on_host(workloads::copies_made(sound.step.ledgers())), (std::vector<float>{0, 4, 0}))
        << impl;
    faulty.engine->drop_graphs();
  }
}

}  // namespace
}  // namespace graphproof::engines::fp8_weights_test
