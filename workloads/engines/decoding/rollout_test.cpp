// A job that trains, generates and trains on with the graphs of both alive, and the faults of it
// that one rank can show.
#include <gtest/gtest.h>

#include "fixtures/inspect/host_copies.h"
#include "fixtures/inspect/tensor_comparison.h"
#include "workloads/engines/decoding/decoder.h"
#include "workloads/testing/twin_steps.h"

namespace graphproof::engines::rollout_test {
namespace {

using fixtures::Fault;

constexpr std::int64_t kTrained = 4, kRollouts = kTrained - 1;

struct Job {
  std::string impl = "local";
  InferenceScope scope = InferenceScope::block;
  bool sampled = false;
  workloads::ModelConfig model = {.layers = 2,
                                  .hidden = 32,
                                  .heads = 4,
                                  .kv_groups = 2,
                                  .ffn = 64,
                                  .vocab = 64,
                                  .microbatch_size = 4,
                                  .microbatches = 2,
                                  .linear_bias = true,
                                  .dropout = 0.1};
};

DecoderConfig rollout_of(const Job& job, InferenceScope scope, std::int64_t padding) {
  return {.requests = {.slots = 4,
                       .length = 16,
                       .steps = requests::rollout_steps(16),
                       .chunk = 3,
                       .blocks = 0,
                       .ranks = 1,
                       .sizes = requests::powers_of_two(4)},
          .scope = scope,
          .sampled = job.sampled,
          .padding = padding};
}

/// What equals eager: training by step, and inference by rollout. Both eager jobs are sound.
struct Outcome {
  std::vector<bool> training, rollouts;
  std::vector<std::string> changed_by;  // captures that changed the state
  std::vector<std::int64_t> allocated;  // bytes after each rollout
};

Outcome run(const Job& job, Fault fault = Fault::none) {
  TwinSteps twins(job.model, {}, {.impl = job.impl}, fault);
  Decoder eager(rollout_of(job, InferenceScope::none, 0), {.impl = "none"}, twins.device(),
                twins.eager_step(), nullptr);
  Decoder graph(rollout_of(job, job.scope, 5), {.impl = "local"}, twins.device(),
                twins.graph_step(), &twins.witness);
  Outcome outcome;
  for (std::int64_t step = 0; step < kTrained; ++step) {
    outcome.training.push_back(twins.step(step).equal);
    if (step == 0) continue;
    if (step == 1) graph.capture();
    bool equal = true;
    for (std::int64_t index = 0; index < requests::rollout_steps(16); ++index) {
      eager.run(index);
      graph.run(index);
      twins.device().synchronize();
      equal = equal && fixtures::compare(fixtures::on_host(eager.results()),
                                         fixtures::on_host(graph.results()))
                           .equal;
    }
    outcome.rollouts.push_back(equal);
    outcome.allocated.push_back(twins.device().memory().allocated);
  }
  outcome.changed_by = twins.witness.changed_by;
  graph.drop_graphs();
  twins.graph->drop_graphs();
  return outcome;
}

const std::vector<bool> kAllTrained(kTrained, true), kAllRollouts(kRollouts, true);

TEST(Rollout, TrainsAndGeneratesAsEagerDoes) {
  for (const char* impl : {"none", "local", "full_iteration"})
    for (const InferenceScope scope : {InferenceScope::layer, InferenceScope::block}) {
      const Outcome outcome = run({.impl = impl, .scope = scope, .sampled = true});
      EXPECT_EQ(outcome.training, kAllTrained) << impl;
      EXPECT_EQ(outcome.rollouts, kAllRollouts) << impl;
      EXPECT_TRUE(outcome.changed_by.empty()) << impl;
      EXPECT_EQ(outcome.allocated[1], outcome.allocated[2]) << impl;
    }
}

TEST(Rollout, ChangesNothingThatTrainingRecomputes) {
  for (const workloads::RecomputedPart part :
       {workloads::RecomputedPart::mlp, workloads::RecomputedPart::core_attn}) {
    Job job;
    job.model.recompute.parts = {part};
    const Outcome outcome = run(job);
    EXPECT_EQ(outcome.training, kAllTrained) << name(part);
    EXPECT_EQ(outcome.rollouts, kAllRollouts) << name(part);
    EXPECT_TRUE(outcome.changed_by.empty()) << name(part);
  }
}

TEST(Rollout, WithWeightsOfTheCaptureIsRightOnlyOnce) {
  const Outcome outcome = run({}, Fault::rollout_weights_frozen);
  EXPECT_EQ(outcome.rollouts, (std::vector{true, false, false}));
  EXPECT_EQ(outcome.training, kAllTrained);
}

TEST(Rollout, WithUpProjectionsOfTheCaptureIsRightOnlyOnce) {
  Job job;
  job.model.multi_latent_attention = true;
  job.model.kv_groups = job.model.heads;
  job.model.recompute.parts = {workloads::RecomputedPart::mla_up_proj};
  EXPECT_EQ(run(job, Fault::up_projection_of_rollout_frozen).rollouts,
            (std::vector{true, false, false}));
  const Outcome sound = run(job);
  EXPECT_EQ(sound.rollouts, kAllRollouts);
  EXPECT_EQ(sound.training, kAllTrained);
}

TEST(Rollout, ThatSamplesFromTheGeneratorsOfTrainingChangesTraining) {
  const Outcome outcome = run({.sampled = true}, Fault::sampler_draws_from_training);
  EXPECT_EQ(outcome.training, (std::vector{true, true, false, false}));
  EXPECT_TRUE(outcome.rollouts[0]);
}

TEST(Rollout, InTrainingModeDropsWhatEagerInferenceKeeps) {
  EXPECT_FALSE(run({}, Fault::dropout_in_rollout).rollouts[0]);
}

TEST(Rollout, ThatLeavesEvaluationModeOnChangesEagerTraining) {
  EXPECT_EQ(run({.impl = "none"}, Fault::evaluation_mode_left_on).training,
            (std::vector{true, true, false, false}));
  EXPECT_EQ(run({}, Fault::evaluation_mode_left_on).training, kAllTrained);  // graphs drop on
}

TEST(Rollout, ThatWritesMemoryOfTrainingChangesTraining) {
  const Outcome outcome = run({}, Fault::rollout_writes_memory_of_training);
  EXPECT_EQ(outcome.training, (std::vector{true, true, false, false}));
  EXPECT_TRUE(outcome.rollouts[0]);
}

TEST(Rollout, WhoseResultsAreKeptGrows) {
  const Outcome outcome = run({}, Fault::rollout_results_kept);
  EXPECT_GT(outcome.allocated[2], outcome.allocated[1]);
  EXPECT_EQ(outcome.training, kAllTrained);
}

}  // namespace
}  // namespace graphproof::engines::rollout_test
