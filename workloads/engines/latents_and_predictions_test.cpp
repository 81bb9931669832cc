// Latent attention and multi-token prediction under every engine: replays equal eager steps, the
// prediction layers are graphs of their own, and the faults have their effects.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "workloads/testing/twin_steps.h"

namespace graphproof::engines::latents_and_predictions_test {
namespace {

using fixtures::Fault;
using workloads::ModelConfig;
using workloads::RecomputedPart;

constexpr std::int64_t kWarmup = 2, kSteps = 6;

ModelConfig small_model() {
  return {.hidden = 32, .ffn = 64, .vocab = 64, .seq_length = 8, .microbatches = 2};
}
ModelConfig latent_model() {
  ModelConfig config = small_model();
  config.multi_latent_attention = true;
  return config;
}
ModelConfig predicting_model(std::int64_t layers = 1) {
  ModelConfig config = small_model();
  config.mtp_num_layers = layers;
  return config;
}

TEST(LatentsAndPredictions, EveryEngineReplaysThemBitForBit) {
  ModelConfig again = latent_model(), both = predicting_model(2), experts = predicting_model();
  again.recompute = workloads::selective({RecomputedPart::mla_up_proj, RecomputedPart::core_attn});
  again.dropout = both.dropout = 0.1;
  both.multi_latent_attention = true;
  both.precision = workloads::Precision::bf16;
  experts.experts = 4;
  experts.topk = 2;
  experts.router_score_correction = true;
  ModelConfig fp8 = latent_model(), hybrid = predicting_model(), packed = predicting_model(2);
  fp8.precision = workloads::Precision::fp8_delayed;
  fp8.fp8_weights = true;
  fp8.mtp_num_layers = 1;
  hybrid.hybrid = packed.packed = true;
  for (const EngineTraits& engine : kEngineTraits)
    for (const ModelConfig& config :
         {latent_model(), again, predicting_model(), both, experts, fp8, hybrid, packed}) {
      if (!engine.captures()) continue;
      const std::string impl(engine.impl);
      SCOPED_TRACE(impl + ", latents " + std::to_string(config.multi_latent_attention) +
                   ", predictions " + std::to_string(config.mtp_num_layers) + ", " +
                   workloads::name_of(config.precision));
      TwinSteps twins(config, {}, {.impl = impl, .warmup_steps = kWarmup});
      for (std::int64_t i = 0; i < 4; ++i) EXPECT_EQ(difference(twins.step(i)), "") << "step " << i;
      const Counters counters = twins.graph->counters();
      EXPECT_EQ(counters.replays, (4 - engine.eager_steps(kWarmup)) * counters.launches_per_step);
      EXPECT_EQ(counters.captures, counters.graphs);
      EXPECT_EQ(counters.out_of_order, 0);
      EXPECT_EQ(workloads::on_host(twins.graph_step().layer_counter()),
                std::vector<float>(static_cast<std::size_t>(2 + config.mtp_num_layers), 2 * 4));
      EXPECT_EQ(twins.witness.canaries, 0);
      EXPECT_TRUE(twins.witness.moved_tensors.empty());
      EXPECT_TRUE(twins.witness.changed_by.empty());
      twins.graph->drop_graphs();
    }
}

TEST(LatentsAndPredictions, PredictionLayersAreGraphsAfterTheDecodersInTheOrderOfTheSchedule) {
  for (const char* impl : {"local", "transformer_engine", "callables"}) {
    SCOPED_TRACE(impl);
    TwinSteps twins(predicting_model(2), {},
                    {.impl = impl, .modules = {workloads::ModuleKind::attn}, .warmup_steps = 2});
    for (std::int64_t i = 0; i < 4; ++i) EXPECT_EQ(difference(twins.step(i)), "") << "step " << i;
    std::vector<std::string> forwards;
    for (const CaptureReport& report : twins.witness.reports)
      if (report.graph.ends_with(".forward")) forwards.push_back(report.graph);
    EXPECT_EQ(forwards,
              (std::vector<std::string>{"layers.0.attn.forward", "layers.1.attn.forward",
                                        "mtp.layers.0.attn.forward", "mtp.layers.1.attn.forward"}));
    EXPECT_EQ(twins.graph->counters().launches_per_step, 2 * 2 * 4);
    twins.graph->drop_graphs();
  }
}

TEST(LatentsAndPredictions, AnEvaluationHasTheLossOfTheTrainingStepWithPredictions) {
  TwinSteps twins(predicting_model(2), {}, {.impl = "full_iteration", .warmup_steps = 1});
  const auto batch = twins.batch(0);
  twins.graph->evaluate(batch);
  twins.device().synchronize();
  const auto evaluated = workloads::on_host(twins.graph_step().evaluation_losses());
  twins.graph->step(batch, 0.1);
  twins.device().synchronize();
  EXPECT_EQ(workloads::on_host(twins.graph_step().losses()), evaluated);
  twins.graph->drop_graphs();
}

TEST(LatentsAndPredictions, WhatCannotBeShiftedIsRefused) {
  ModelConfig learned = predicting_model(), grouped = latent_model();
  learned.position_embedding = workloads::PositionEmbedding::learned_absolute;
  grouped.kv_groups = 2;
  for (const auto& [config, says] :
       {std::pair{learned, "multi-token prediction: got learned positions"},
        {predicting_model(8),
         "sequences of 8 tokens; want none of these and more tokens than the 8"},
        {grouped, "got kv_groups = 2 and heads in latent attention = 4"}}) {
    try {
      workloads::TrainStep step(config, {}, workloads::device_under_test(), 1, {});
      FAIL() << "accepted: " << says;
    } catch (const std::invalid_argument& error) {
      EXPECT_NE(std::string(error.what()).find(says), std::string::npos) << error.what();
      EXPECT_NE(std::string(error.what()).find("next: "), std::string::npos) << error.what();
    }
  }
}

using Equal = std::vector<bool>;

Equal equal_steps(const std::string& impl, const ModelConfig& model, Fault fault) {
  TwinSteps twins(model, {}, {.impl = impl, .warmup_steps = kWarmup}, fault);
  Equal equal;
  for (std::int64_t i = 0; i < kSteps; ++i) equal.push_back(twins.step(i).equal);
  twins.graph->drop_graphs();
  return equal;
}

TEST(LatentAndPredictionFaults, ChangeReplaysAloneOrAllStepsAsTheTableSays) {
  struct Row {
    Fault fault;
    const char* impl;
    ModelConfig model;
    Equal equal;
  };
  const Equal after_warm_up{true, true, false, false, false, false},
      after_recording{true, false, false, false, false, false};
  ModelConfig again = latent_model();
  again.recompute = workloads::selective({RecomputedPart::mla_up_proj});
  ModelConfig packed = predicting_model();
  packed.packed = true;
  for (const Row& row :
       {Row{Fault::latent_norm_of_another_layer, "local", latent_model(), after_recording},
        Row{Fault::latent_norm_of_another_layer, "transformer_engine", latent_model(),
            after_warm_up},
        Row{Fault::recompute_of_other_latents, "none", again, Equal(kSteps, false)},
        Row{Fault::prediction_labels_frozen_at_capture, "full_iteration", predicting_model(),
            after_warm_up},
        Row{Fault::prediction_documents_frozen_at_capture, "full_iteration", packed, after_warm_up},
        Row{Fault::prediction_across_documents, "none", packed, Equal(kSteps, false)},
        Row{Fault::prediction_gradient_of_other_microbatch, "local", predicting_model(),
            after_recording},
        Row{Fault::prediction_losses_summed, "none", predicting_model(2), Equal(kSteps, false)}}) {
    SCOPED_TRACE(std::string(row.impl) + ", fault " + std::to_string(static_cast<int>(row.fault)));
    EXPECT_EQ(equal_steps(row.impl, row.model, row.fault), row.equal);
    EXPECT_EQ(equal_steps(row.impl, row.model, Fault::none), Equal(kSteps, true));
  }
}

TEST(LatentAndPredictionFaults, M385LaunchesNothingForThePredictionLayer) {
  for (const Fault fault : {Fault::none, Fault::prediction_layer_not_captured}) {
    TwinSteps twins(predicting_model(), {}, {.impl = "transformer_engine", .warmup_steps = 2},
                    fault);
    for (std::int64_t i = 0; i < 4; ++i) EXPECT_EQ(difference(twins.step(i)), "") << "step " << i;
    EXPECT_EQ(twins.graph->counters().launches_per_step, 2 * 2 * (fault == Fault::none ? 3 : 2));
    twins.graph->drop_graphs();
  }
}

}  // namespace
}  // namespace graphproof::engines::latents_and_predictions_test
