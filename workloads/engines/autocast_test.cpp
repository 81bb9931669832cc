// Autocast under every engine: replays equal eager steps, with a cache where an engine captures
// whole passes, and the faults have their effects.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "workloads/testing/twin_steps.h"

namespace graphproof::engines::autocast_test {
namespace {

using fixtures::Fault;
using workloads::ModelConfig;
using workloads::RecomputeConfig;
using workloads::RecomputedPart;

constexpr std::int64_t kWarmup = 2, kSteps = 6;

ModelConfig cast_model() {
  ModelConfig config{.hidden = 32, .ffn = 64, .vocab = 64, .seq_length = 8, .microbatches = 2};
  config.autocast = true;
  return config;
}

struct Row {
  const char* what;
  ModelConfig config;
};

std::vector<Row> rows() {
  ModelConfig again = cast_model(), parts = cast_model(), experts = cast_model(),
              dropless = cast_model(), hybrid = cast_model(), ahead = cast_model(),
              images = cast_model(), fused = cast_model(), latents = cast_model();
  again.recompute = workloads::full(RecomputeConfig::Method::uniform, 1);
  again.dropout = 0.1;
  parts.recompute = workloads::selective(
      {RecomputedPart::core_attn, RecomputedPart::mlp, RecomputedPart::mlp_norm});
  parts.normalization = workloads::Normalization::LayerNorm;
  parts.activation = workloads::Activation::swiglu;
  parts.linear_bias = parts.qkv_bias = parts.packed = true;
  experts.experts = 4;
  experts.topk = 2;
  experts.shared_expert = experts.router_aux_loss = experts.router_score_correction = true;
  dropless = experts;
  dropless.dropless = dropless.flex = true;
  dropless.recompute = workloads::selective({RecomputedPart::moe_act});
  hybrid.hybrid = true;
  ahead.mtp_num_layers = 2;
  ahead.tied_embeddings = true;
  images.encoder_layers = images.images = 1;
  fused.grad_accumulation_fusion = fused.clip_grad = true;
  latents.multi_latent_attention = true;
  latents.recompute = workloads::selective({RecomputedPart::mla_up_proj});
  return {{"dense", cast_model()},
          {"layers again, with dropout", again},
          {"parts again, documents, biases and gates", parts},
          {"experts", experts},
          {"experts without capacity", dropless},
          {"mamba layers", hybrid},
          {"tokens predicted ahead, tied embeddings", ahead},
          {"images", images},
          {"weight gradients added where they are made", fused},
          {"latents", latents}};
}

TEST(Autocast, EveryEngineReplaysItBitForBit) {
  for (const EngineTraits& engine : kEngineTraits)
    for (Row& row : rows())
      for (const bool cache : {false, true}) {
        if (!engine.captures() || (cache && engine.captures_modules())) continue;
        // Refused by R078: graphs of parts cannot run a whole layer again in its backward.
        if (engine.captures_modules() && row.config.recompute.full()) continue;
        const std::string impl(engine.impl);
        SCOPED_TRACE(impl + ", " + row.what + (cache ? ", with a cache" : ""));
        row.config.autocast_cache = cache;
        TwinSteps twins(row.config, {}, {.impl = impl, .warmup_steps = kWarmup});
        for (std::int64_t i = 0; i < 4; ++i)
          EXPECT_EQ(difference(twins.step(i)), "") << "step " << i;
        const Counters counters = twins.graph->counters();
        EXPECT_EQ(counters.replays, (4 - engine.eager_steps(kWarmup)) * counters.launches_per_step);
        EXPECT_EQ(twins.witness.canaries, 0);
        EXPECT_TRUE(twins.witness.moved_tensors.empty());
        EXPECT_TRUE(twins.witness.changed_by.empty());
        twins.graph->drop_graphs();
      }
}

TEST(Autocast, RoundsProductsAndNothingElse) {
  ModelConfig wide = cast_model();
  wide.autocast = false;
  TwinSteps cast(cast_model(), {}, {.impl = "manual", .warmup_steps = 1});
  TwinSteps exact(wide, {}, {.impl = "manual", .warmup_steps = 1});
  cast.step(0);
  exact.step(0);
  const float loss = workloads::on_host(cast.graph->losses())[0],
              expected = workloads::on_host(exact.graph->losses())[0];
  EXPECT_NE(loss, expected);
  EXPECT_NEAR(loss, expected, 0.02 * expected) << "a product has an error of 2^-9";
  for (const fixtures::NamedTensor& one : cast.graph_step().parameters())
    EXPECT_EQ(one.tensor.scalar_type(), at::kFloat) << one.name;
}

TEST(Autocast, WhatItDoesNotCastIsRefused) {
  ModelConfig bf16 = cast_model(), overlapped = cast_model();
  bf16.precision = workloads::Precision::bf16;
  overlapped.overlap_ep_comm = true;
  for (const ModelConfig& config : {bf16, overlapped}) {
    try {
      workloads::TrainStep step(config, {}, workloads::device_under_test(), 1, {});
      FAIL() << "accepted";
    } catch (const std::invalid_argument& error) {
      EXPECT_NE(std::string(error.what()).find("autocast: got parameters in "), std::string::npos)
          << error.what();
      EXPECT_NE(std::string(error.what()).find("next: "), std::string::npos) << error.what();
    }
  }
}

using Equal = std::vector<bool>;

Equal equal_steps(const std::string& impl, ModelConfig model, bool cache, Fault fault) {
  model.autocast_cache = cache;
  TwinSteps twins(model, {}, {.impl = impl, .warmup_steps = kWarmup}, fault);
  Equal equal;
  for (std::int64_t i = 0; i < kSteps; ++i) equal.push_back(twins.step(i).equal);
  twins.graph->drop_graphs();
  return equal;
}

TEST(AutocastFaults, ChangeReplaysOrTheEagerStepsAfterThemAsTheTableSays) {
  ModelConfig again = cast_model();
  again.recompute = workloads::full(RecomputeConfig::Method::uniform, 1);
  struct FaultRow {
    Fault fault;
    const char* impl;
    ModelConfig model;
    bool cache;
    Equal equal;
  };
  for (const FaultRow& row :
       {FaultRow{Fault::casts_of_the_warm_up_captured,
                 "full_iteration",
                 cast_model(),
                 true,
                 {true, true, true, false, false, false}},
        // Without a cache the captured passes find nothing in it.
        FaultRow{Fault::casts_of_the_warm_up_captured, "full_iteration", cast_model(), false,
                 Equal(kSteps, true)},
        // The eager twin makes its casts in step 3 and reads them from then on.
        FaultRow{Fault::autocast_region_left_open,
                 "full_iteration",
                 cast_model(),
                 true,
                 {true, true, true, true, false, false}},
        FaultRow{Fault::recompute_outside_autocast, "full_iteration", again, false,
                 Equal(kSteps, false)}}) {
    SCOPED_TRACE(std::string(row.impl) + ", fault " + std::to_string(static_cast<int>(row.fault)));
    EXPECT_EQ(equal_steps(row.impl, row.model, row.cache, row.fault), row.equal);
    EXPECT_EQ(equal_steps(row.impl, row.model, row.cache, Fault::none), Equal(kSteps, true));
  }
}

}  // namespace
}  // namespace graphproof::engines::autocast_test
