// The features of a step besides plain fp32 gradient descent: every engine replays each feature bit
// for bit, and the faults that concern it have an effect.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "fixtures/device/error.h"
#include "workloads/testing/twin_steps.h"

namespace graphproof::engines::features_test {
namespace {

using fixtures::Fault;

using workloads::ModelConfig;
using workloads::OptimizerKind;
using workloads::Precision;

struct Feature {
  const char* name;
  ModelConfig model;
};

// Small, because products in bf16 are slow on a CPU.
ModelConfig small() {
  return {.hidden = 32,
          .heads = 4,
          .kv_groups = 2,
          .ffn = 64,
          .vocab = 64,
          .seq_length = 8,
          .microbatches = 2};
}

ModelConfig adam() {
  ModelConfig model = small();
  model.optimizer = OptimizerKind::adam;
  return model;
}

ModelConfig recompute(double dropout) {
  ModelConfig model = small();
  model.dropout = dropout;
  model.recompute = workloads::selective({workloads::RecomputedPart::core_attn});
  return model;
}

ModelConfig experts() {
  ModelConfig model = small();
  model.experts = 4;
  model.topk = 2;
  model.shared_expert = true;
  return model;
}

std::vector<Feature> features() {
  ModelConfig accumulated = small(), bf16 = small(), all = experts();
  accumulated.microbatches = 4;
  bf16.precision = Precision::bf16;
  bf16.dropout = 0.1;
  all.dropout = 0.1;
  all.recompute = workloads::selective({workloads::RecomputedPart::core_attn});
  all.precision = Precision::bf16;
  all.optimizer = OptimizerKind::adam;
  ModelConfig whole_layers = small(), expert_parts = experts();
  whole_layers.dropout = 0.1;
  whole_layers.recompute = workloads::full(workloads::RecomputeConfig::Method::uniform, 2);
  expert_parts.recompute =
      workloads::selective({workloads::RecomputedPart::moe, workloads::RecomputedPart::moe_act,
                            workloads::RecomputedPart::attention_norm});
  ModelConfig fp16 = adam(), decayed = adam();
  fp16.precision = Precision::fp16;
  fp16.dropout = 0.1;
  decayed.clip_grad = decayed.weight_decay = true;
  ModelConfig fp16_static = small();
  fp16_static.precision = Precision::fp16;
  fp16_static.loss_scaling = workloads::LossScaling::static_;
  ModelConfig fused = all;
  fused.grad_accumulation_fusion = true;
  fp16_static.clip_grad = fp16_static.weight_decay = true;
  return {{"four microbatches", accumulated},
          {"adam", adam()},
          {"bf16", bf16},
          {"recompute", recompute(0)},
          {"recompute and dropout", recompute(0.1)},
          {"experts", experts()},
          {"whole layers again", whole_layers},
          {"parts of experts again", expert_parts},
          {"fp16", fp16},
          {"fp16 with a constant scale, clipped, with decay", fp16_static},
          {"clipped, with decay", decayed},
          {"all of them, weight gradients added where they are made", fused},
          {"all of them", all}};
}

TEST(Features, AreReplayedBitForBitWithNewInputsAndRatesInEveryStep) {
  for (const char* impl : {"manual", "full_iteration"})
    for (const Feature& feature : features()) {
      SCOPED_TRACE(std::string(feature.name) + " under " + impl);
      TwinSteps twins(feature.model, {}, {.impl = impl, .warmup_steps = 2});
      for (std::int64_t i = 0; i < 5; ++i) EXPECT_EQ(difference(twins.step(i)), "") << "step " << i;
      EXPECT_EQ(twins.graph->counters().replays, 3 * twins.graph->counters().launches_per_step);
      EXPECT_EQ(twins.witness.canaries, 0);
      EXPECT_TRUE(twins.witness.moved_tensors.empty());
      EXPECT_EQ(twins.witness.state_before, twins.witness.state_after);
      twins.graph->drop_graphs();
    }
}

TEST(Features, AreReplayedBitForBitWithBackwardOnItsOwnThread) {
  for (const Feature& feature : features()) {
    SCOPED_TRACE(feature.name);
    workloads::device_under_test().autograd_threads(true);
    {
      TwinSteps twins(feature.model, {}, {.impl = "manual", .warmup_steps = 1});
      for (std::int64_t i = 0; i < 3; ++i) EXPECT_EQ(difference(twins.step(i)), "") << "step " << i;
      twins.graph->drop_graphs();
    }
    workloads::device_under_test().autograd_threads(false);
  }
}

std::vector<float> of(const std::vector<NamedTensor>& tensors, const std::string& name) {
  for (const NamedTensor& tensor : tensors)
    if (tensor.name == name) return workloads::on_host(tensor.tensor);
  ADD_FAILURE() << "no tensor " << name;
  return {};
}

TEST(FeatureFaults, M24FreezesAdamsStepNumberAtItsCapture) {
  TwinSteps twins(adam(), {}, {.impl = "manual", .warmup_steps = 2}, Fault::adam_step_by_value);
  std::vector<bool> equal;
  std::vector<float> counted;
  for (std::int64_t i = 0; i < 6; ++i) {
    equal.push_back(twins.step(i).equal);
    counted.push_back(of(twins.graph_step().optimizer_state(), "state:adam.step")[0]);
  }
  EXPECT_EQ(equal, (std::vector<bool>{true, true, true, false, false, false}));
  EXPECT_EQ(counted, (std::vector<float>{1, 2, 3, 3, 3, 3}));
  twins.graph->drop_graphs();
}

TEST(OptimizerGraph, IsReplayedBitForBitInOneLaunchMoreAStepAndSharesThePool) {
  ModelConfig decayed = adam(), fp16 = adam();
  decayed.clip_grad = decayed.weight_decay = true;
  fp16.precision = Precision::fp16;
  for (const char* impl : {"local", "transformer_engine", "full_iteration", "callables"})
    for (const ModelConfig& model : {decayed, fp16, small()}) {
      TwinSteps twins(model, {}, {.impl = impl, .warmup_steps = 1, .optimizer_graph = true});
      for (std::int64_t i = 0; i < 5; ++i)
        EXPECT_EQ(difference(twins.step(i)), "") << impl << " step " << i;
      const CaptureReport& captured = twins.witness.reports.back();
      EXPECT_EQ(captured.graph, "optimizer") << impl << ": after the others, in the same step";
      EXPECT_GE(captured.warmups, 1) << impl;
      EXPECT_TRUE(twins.witness.changed_by.empty()) << impl;
      const Counters with = twins.graph->counters();
      TwinSteps eager_optimizer(model, {}, {.impl = impl, .warmup_steps = 1});
      for (std::int64_t i = 0; i < 5; ++i) eager_optimizer.step(i);
      const Counters without = eager_optimizer.graph->counters();
      constexpr std::int64_t kReplayed = 4;
      EXPECT_EQ(with.replays, without.replays + kReplayed) << impl;
      EXPECT_EQ(with.launches_per_step, without.launches_per_step + 1) << impl;
      EXPECT_EQ(std::count(twins.witness.calls.begin(), twins.witness.calls.end(),
                           "before_replay optimizer"),
                kReplayed)
          << impl;
      EXPECT_TRUE(twins.witness.moved_tensors.empty()) << impl;
      EXPECT_EQ(with.graphs, without.graphs + 1) << impl;
      twins.graph->drop_graphs();
      EXPECT_EQ(twins.graph->counters().replays, with.replays) << impl;
    }
}

TEST(OptimizerGraph, M23FreezesItsRateAtTheCapture) {
  TwinSteps twins(adam(), {}, {.impl = "local", .warmup_steps = 1, .optimizer_graph = true},
                  Fault::learning_rate_by_value);
  EXPECT_TRUE(twins.step(0).equal) << "eager";
  EXPECT_FALSE(twins.step(1).equal) << "another rate";
}

TEST(OptimizerGraph, M131LosesTheRateAndTheObserverIsShownIt) {
  TwinSteps twins(adam(), {},
                  {.impl = "full_iteration", .warmup_steps = 1, .optimizer_graph = true},
                  Fault::learning_rate_rebound);
  for (std::int64_t i = 0; i < 3; ++i)
    EXPECT_TRUE(twins.step(i).equal) << "step " << i << ": the rate was written before it moved";
  EXPECT_EQ(twins.witness.moved_tensors, std::vector<std::string>{"learning_rate"});
  EXPECT_FALSE(twins.step(3).equal) << "the rate of the step before";
}

TEST(Features, OfFp16SkipAndTakeStepsWithinReplays) {
  ModelConfig model = small();
  model.precision = Precision::fp16;
  TwinSteps twins(model, {}, {.impl = "manual", .warmup_steps = 2});
  std::vector<bool> skipped;
  for (std::int64_t i = 0; i < 6; ++i) {
    EXPECT_EQ(difference(twins.step(i)), "") << "step " << i;
    if (i >= 2)
      skipped.push_back(workloads::on_host(twins.graph_step().skipped().to(at::kFloat))[0] != 0);
  }
  EXPECT_NE(std::count(skipped.begin(), skipped.end(), true), 0);
  EXPECT_NE(std::count(skipped.begin(), skipped.end(), false), 0);
  twins.graph->drop_graphs();
}

TEST(FeatureFaults, M95FreezesTheLossScaleAtItsCapture) {
  ModelConfig model = small();
  model.precision = Precision::fp16;
  for (const bool faulty : {false, true}) {
    TwinSteps twins(model, {}, {.impl = "full_iteration", .warmup_steps = 2},
                    faulty ? Fault::loss_scale_by_value : Fault::none);
    std::set<float> applied;
    for (std::int64_t i = 0; i < 6; ++i) {
      twins.step(i);
      if (i >= 2) applied.insert(of(twins.graph_step().ledgers(), "loss_scale:applied")[0]);
    }
    EXPECT_EQ(applied.size() == 1, faulty);
    twins.graph->drop_graphs();
  }
}

TEST(FeatureFaults, M81IsRefusedInTheCapture) {
  TwinSteps twins(small(), {}, {.impl = "full_iteration", .warmup_steps = 1},
                  Fault::nan_check_in_capture);
  twins.step(0);
  try {
    twins.step(1);
    ADD_FAILURE() << "captured";
  } catch (const capture::DeviceError& error) {
    EXPECT_EQ(error.code, 900) << error.what();
  }
}

TEST(HostChecks, CheckEveryLossAndTheGradientsAndNameWhatIsNotFinite) {
  ModelConfig model = small();
  model.nan_check_loss = model.nan_check_grad = true;
  for (const char* impl : {"none", "local"}) {
    TwinSteps twins(model, {}, {.impl = impl, .warmup_steps = 1});
    for (std::int64_t i = 0; i < 3; ++i)
      EXPECT_EQ(difference(twins.step(i)), "") << impl << " step " << i;
    EXPECT_EQ(twins.graph_step().host_checks().losses_checked(), 6);
    EXPECT_EQ(twins.graph_step().host_checks().gradients_checked(), 3);
    twins.graph_step().parameters().front().tensor.detach().fill_(
        std::numeric_limits<float>::quiet_NaN());
    try {
      twins.graph->step(twins.batch(3), 0.1);
      ADD_FAILURE() << "passed";
    } catch (const std::runtime_error& error) {
      EXPECT_NE(
          std::string(error.what())
              .find("loss of microbatch 0: got a value that is not finite; want finite values"),
          std::string::npos)
          << error.what();
    }
  }
}

ModelConfig packed() {
  ModelConfig model = small();
  model.packed = true;
  model.dropout = 0.1;
  return model;
}

TEST(Features, PackedSequencesAreReplayedBitForBitUnderEveryEngine) {
  using workloads::ModuleKind;
  for (const EngineConfig& engine :
       {EngineConfig{.impl = "manual", .warmup_steps = 1},
        EngineConfig{.impl = "full_iteration", .warmup_steps = 1},
        EngineConfig{.impl = "local", .warmup_steps = 1},
        EngineConfig{.impl = "local", .modules = {ModuleKind::attn}, .warmup_steps = 1},
        EngineConfig{.impl = "transformer_engine", .warmup_steps = 1},
        EngineConfig{.impl = "transformer_engine",
                     .modules = {ModuleKind::attn, ModuleKind::mlp},
                     .warmup_steps = 1},
        EngineConfig{.impl = "callables", .warmup_steps = 1}}) {
    TwinSteps twins(packed(), {}, engine);
    for (std::int64_t i = 0; i < 4; ++i)
      EXPECT_EQ(difference(twins.step(i)), "") << engine.impl << " step " << i;
    EXPECT_GT(twins.graph->counters().replays, 0) << engine.impl;
    EXPECT_EQ(twins.witness.canaries, 0) << engine.impl;
    twins.graph->drop_graphs();
  }
}

TEST(FeatureFaults, M108ReplaysWithTheDocumentsOfTheCapture) {
  for (const bool faulty : {false, true}) {
    TwinSteps twins(packed(), {}, {.impl = "local", .warmup_steps = 1},
                    faulty ? Fault::documents_frozen_at_capture : Fault::none);
    for (std::int64_t i = 0; i < 3; ++i) EXPECT_EQ(twins.step(i).equal, !faulty || i < 1) << i;
    twins.graph->drop_graphs();
  }
}

TEST(FeatureFaults, M34ReplaysARecomputeWithAFreshMask) {
  for (const bool faulty : {false, true}) {
    TwinSteps twins(recompute(0.1), {}, {.impl = "manual", .warmup_steps = 1},
                    faulty ? Fault::recompute_draws_new_mask : Fault::none);
    for (std::int64_t i = 0; i < 4; ++i) twins.step(i);
    const auto ledgers = twins.graph_step().ledgers();
    EXPECT_EQ(of(ledgers, "recompute:first") != of(ledgers, "recompute:again"), faulty);
    const auto masks = twins.graph_step().masks();
    EXPECT_EQ(of(masks, "mask:1.0.core_attention") != of(masks, "mask:1.0.core_attention_again"),
              faulty);
    twins.graph->drop_graphs();
  }
}

TEST(FeatureFaults, M34AndM164ShowInTheLedgerOfExpertsAfterACapturedRouter) {
  ModelConfig model = experts();
  model.dropout = 0.1;
  model.recompute =
      workloads::selective({workloads::RecomputedPart::core_attn, workloads::RecomputedPart::moe});
  model.recompute.after_router = true;
  const std::vector<workloads::ModuleKind> parts{workloads::ModuleKind::moe_router,
                                                 workloads::ModuleKind::moe_preprocess};
  for (const Fault fault :
       {Fault::none, Fault::recompute_draws_new_mask, Fault::recompute_of_other_tokens}) {
    TwinSteps twins(model, {}, {.impl = "local", .modules = parts}, fault);
    for (std::int64_t i = 0; i < 3; ++i) twins.step(i);
    const auto ledgers = twins.graph_step().ledgers();
    const auto first = of(ledgers, "recompute:first"),
               again = of(ledgers, "recompute:again");  // [P, M, R], core_attn before moe
    const auto half = static_cast<std::ptrdiff_t>(first.size() / 2);
    EXPECT_EQ(!std::equal(first.begin(), first.begin() + half, again.begin()),
              fault == Fault::recompute_draws_new_mask)
        << fault;
    EXPECT_EQ(!std::equal(first.begin() + half, first.end(), again.begin() + half),
              fault == Fault::recompute_of_other_tokens)
        << fault;
    twins.graph->drop_graphs();
  }
}

TEST(FeatureFaults, M74DropsTokensInReplaysAndCountsNone) {
  for (const bool faulty : {false, true}) {
    TwinSteps twins(experts(), {}, {.impl = "full_iteration", .warmup_steps = 1},
                    faulty ? Fault::dispatch_buffers_too_small : Fault::none);
    for (std::int64_t i = 0; i < 4; ++i) EXPECT_EQ(twins.step(i).equal, !faulty || i < 1) << i;
    double assigned = 0, accounted = 0;
    for (const auto& [name, tensor] : twins.graph_step().ledgers())
      for (const float count : workloads::on_host(tensor)) {
        if (name == "experts:assigned") assigned += count;
        if (name == "experts:carried" || name == "experts:dropped") accounted += count;
      }
    EXPECT_EQ(accounted < assigned, faulty);
    twins.graph->drop_graphs();
  }
}

}  // namespace
}  // namespace graphproof::engines::features_test
