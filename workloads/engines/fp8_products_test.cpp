// Products in fp8 and fp4 under every engine on one rank: scales that move between replays, and the
// faults of the capture that they invite. For several ranks see fp8_layouts_test.cpp.
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "workloads/config/precision.h"
#include "workloads/faults/plant.h"
#include "workloads/testing/small_model.h"
#include "workloads/testing/twin_steps.h"

namespace graphproof::engines::fp8_products_test {
namespace {

using fixtures::Fault;

using workloads::ModelConfig;
using workloads::ModuleKind;
using workloads::on_host;
using workloads::Precision;
using Modules = std::vector<ModuleKind>;

constexpr std::int64_t kWarmup = 1, kSteps = 4, kMicrobatches = 2, kLayers = 2;

ModelConfig dense(Precision precision = Precision::fp8_delayed) {
  return small({.layers = kLayers,
                .microbatches = kMicrobatches,
                .linear_bias = true,
                .dropout = 0.1,
                .precision = precision});
}
ModelConfig with_experts(Precision precision = Precision::fp8_delayed) {
  ModelConfig config = dense(precision);
  config.experts = 4;
  config.topk = 2;
  config.shared_expert = true;
  return config;
}

EngineConfig engine(const std::string& impl, Modules modules = {}) {
  return {.impl = impl, .modules = std::move(modules), .warmup_steps = kWarmup};
}

std::vector<float> named(const std::vector<NamedTensor>& tensors, const std::string& name) {
  for (const auto& [other, tensor] : tensors)
    if (other == name) return on_host(tensor);
  ADD_FAILURE() << "no tensor " << name;
  return {};
}

// The compared tensors include the scales, their history, and the kept copies.
TEST(Fp8Products, AreReplayedBitForBitByEveryEngineInEveryCut) {
  struct Row {
    const char* name;
    ModelConfig model;
    std::string impl;
    Modules modules;
  };
  const Modules both{ModuleKind::attn, ModuleKind::mlp};
  std::vector<Row> rows;
  for (const Precision precision :
       {Precision::fp8_delayed, Precision::fp8_current, Precision::mxfp8, Precision::nvfp4}) {
    ModelConfig again = dense(precision), fused = dense(precision), ends = dense(precision),
                kept = dense(precision), hybrid = dense(precision);
    again.recompute = workloads::selective(
        {workloads::RecomputedPart::mlp, workloads::RecomputedPart::core_attn});
    fused.grad_accumulation_fusion = true;
    ends.first_last_layers_bf16 = true;
    ends.layers = 3;
    kept.fp8_weights = true;
    hybrid.hybrid = true;
    for (const char* impl : {"local", "transformer_engine", "callables"}) {
      rows.push_back({"whole layers", dense(precision), impl, {}});
      rows.push_back({"kept copies", kept, impl, {}});
      rows.push_back({"recompute", again, impl, both});
    }
    for (const char* impl : {"local", "transformer_engine"}) {
      rows.push_back({"MLP", dense(precision), impl, {ModuleKind::mlp}});
      rows.push_back({"fused", fused, impl, {}});
      rows.push_back({"all but the ends", ends, impl, both});
      rows.push_back({"mamba", hybrid, impl, {ModuleKind::mamba}});
      rows.push_back({"experts", with_experts(precision), impl, {}});
      rows.push_back({"shared expert",
                      with_experts(precision),
                      impl,
                      {ModuleKind::attn, ModuleKind::moe_router}});
    }
    ModelConfig overlapped_expert = with_experts(precision), dropless = with_experts(precision);
    overlapped_expert.shared_expert_overlap = true;
    dropless.dropless = true;
    dropless.linear_bias = false;
    rows.push_back({"dropless", dropless, "local", {ModuleKind::attn}});
    for (const char* impl : {"local", "full_iteration"})
      rows.push_back({"shared expert on a stream of its own", overlapped_expert, impl, {}});
    for (const char* impl : {"manual", "full_iteration"})
      for (const ModelConfig& model :
           {dense(precision), again, kept, hybrid, with_experts(precision)})
        rows.push_back({"", model, impl, {}});
  }
  for (const Row& row : rows) {
    SCOPED_TRACE(row.impl + ", " + row.name + ", " + workloads::name_of(row.model.precision));
    TwinSteps twins(row.model, {}, engine(row.impl, row.modules));
    for (std::int64_t i = 0; i < kSteps; ++i)
      EXPECT_EQ(difference(twins.step(i)), "") << "step " << i;
    EXPECT_EQ(difference(twins.step(kWarmup)), "") << "the inputs of the capture last";
    EXPECT_GT(twins.graph->counters().replays, 0);
    EXPECT_EQ(twins.witness.canaries, 0);
    EXPECT_TRUE(twins.witness.moved_tensors.empty());
    EXPECT_TRUE(twins.witness.changed_by.empty()) << "warm-up notes nothing";
    twins.graph->drop_graphs();
  }
}

TEST(Fp8Products, TrainOnAfterEvaluationUnderEveryEngine) {
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

/// Runs `steps` steps of both twins under a fault; returns the number of steps that differ.
struct Faulty {
  Faulty(const ModelConfig& model, const std::string& impl, Fault fault)
      : twins(model, {}, engine(impl), fault) {
    for (std::int64_t i = 0; i < kSteps; ++i) differing += !difference(twins.step(i)).empty();
    twins.graph->drop_graphs();
  }
  std::vector<float> ledger(const std::string& name) {
    return named(twins.graph_step().ledgers(), name);
  }
  std::vector<float> state(const std::string& name) {
    return named(twins.graph_step().fp8_state(), name);
  }
  TwinSteps twins;
  std::int64_t differing = 0;
};
const std::vector<float> kOnce(2, kMicrobatches), kNever(2, 0), kHalf(2, kMicrobatches / 2);

TEST(Fp8ProductsFaults, M320ReplaysTheScalesOfTheCapture) {
  for (const char* impl :
       {"manual", "full_iteration", "local", "transformer_engine", "callables"}) {
    Faulty run(dense(), impl, Fault::fp8_scale_by_value);
    EXPECT_GT(run.differing, 0) << impl;
    EXPECT_EQ(run.ledger("fp8:updates"), kOnce) << impl << ": the scales themselves move on";
  }
}

TEST(Fp8ProductsFaults, M321ReducesMoreOftenAndChangesNothingElse) {
  for (const char* impl : {"full_iteration", "local", "transformer_engine", "callables"}) {
    Faulty run(dense(), impl, Fault::amax_reduced_in_every_graph);
    EXPECT_EQ(run.ledger("fp8:updates"), kOnce) << impl;
    EXPECT_GT(run.ledger("fp8:reductions")[0], kMicrobatches) << impl;
    EXPECT_EQ(run.ledger("fp8:reductions")[1], kMicrobatches) << impl;
  }
}

TEST(Fp8ProductsFaults, M322LeavesTheScalesOfTheCaptureAsTheyAre) {
  for (const char* impl : {"local", "transformer_engine", "callables"}) {
    Faulty run(dense(), impl, Fault::fp8_context_missing_at_replay);
    EXPECT_GT(run.differing, 0) << impl;
    EXPECT_EQ(run.ledger("fp8:updates"), kNever) << impl;
    EXPECT_NE(run.state("state:fp8.forward.amax")[0], 0) << impl << ": noted and not taken over";
  }
}

TEST(Fp8ProductsFaults, M323KeepsTheCopiesOfTheFirstStep) {
  ModelConfig model = dense();
  model.fp8_weights = true;
  for (const char* impl : {"local", "full_iteration"}) {
    Faulty run(model, impl, Fault::fp8_copies_stale_over_a_step);
    EXPECT_GT(run.differing, 0) << impl;
    const std::vector<float> made = run.ledger("fp8:made");  // of each weight of each layer
    EXPECT_FALSE(made.empty()) << impl;
    EXPECT_EQ(made, std::vector<float>(made.size(), 0)) << impl;
  }
}

TEST(Fp8ProductsFaults, M324UpdatesTheScalesOnceForTwoMicrobatches) {
  for (const char* impl : {"local", "transformer_engine", "callables"}) {
    Faulty run(dense(), impl, Fault::amax_history_shared_by_two_microbatches);
    EXPECT_GT(run.differing, 0) << impl;
    EXPECT_EQ(run.ledger("fp8:updates"), kHalf) << impl;
  }
}

TEST(Fp8ProductsFaults, M405RoundsWithTheScalesOfTheCapture) {
  for (const char* impl : {"manual", "full_iteration", "local", "transformer_engine", "callables"})
    for (const Precision precision : {Precision::mxfp8, Precision::nvfp4}) {
      Faulty run(dense(precision), impl, Fault::block_scales_by_value);
      EXPECT_EQ(run.differing, kSteps - kWarmup) << impl << workloads::name_of(precision);
    }
}

// A square of a weight has one scale, so only the gradients of weights are others. With mxfp8 no
// number here is: scales are powers of two, under which a number of e4m3 stays as it is unless it
// is very small beside the largest one of its column.
TEST(Fp8ProductsFaults, M406RoundsTwiceWhatGradientsAreMadeOf) {
  for (const char* impl :
       {"manual", "full_iteration", "local", "transformer_engine", "callables"}) {
    TwinSteps twins(dense(Precision::nvfp4), {}, engine(impl),
                    Fault::columns_cast_from_rounded_rows);
    for (std::int64_t i = 0; i < kWarmup; ++i)
      EXPECT_EQ(difference(twins.step(i)), "") << impl << ": nothing is captured yet";
    EXPECT_NE(difference(twins.step(kWarmup)), "") << impl;
    EXPECT_EQ(on_host(twins.graph_step().losses()), on_host(twins.eager_step().losses()))
        << impl << ": no forward pass reads columns";
    twins.graph->drop_graphs();
  }
}

}  // namespace
}  // namespace graphproof::engines::fp8_products_test
