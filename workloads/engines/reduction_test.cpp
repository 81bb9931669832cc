// From the ranks' gradients to those of the global batch, with and without overlap, and what the optimizer makes of them:
// started by mpirun with 2 and 4 ranks, each test goes through every layout that fits.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "fixtures/capture/error.h"
#include "fixtures/comm/collectives.h"
#include "workloads/engines/ranks_under_test.h"
#include "workloads/engines/twin_steps.h"
#include "workloads/gradient_clip.h"

namespace graphproof::engines {
namespace {

using workloads::Layout;
using workloads::ModelConfig;
using workloads::on_host;

RanksUnderTest* const ranks =
    static_cast<RanksUnderTest*>(testing::AddGlobalTestEnvironment(new RanksUnderTest));

/// A training step on its own stream.
struct Ran {
  Ran(const ModelConfig& config, const Layout& layout, const std::string& fault = "none", std::int64_t steps = 2)
      : stream(workloads::device_under_test().stream_from_pool()),
        guard(stream),
        step(config, layout, workloads::device_under_test(), 1, {fault}) {
    step.learning_rate(0.1);
    for (std::int64_t i = 0; i < steps; ++i) {
      step.forward_backward(make_batch(config, layout, 1, i, workloads::device_under_test().torch_device()));
      step.optimizer_step();
    }
  }
  float state(const std::string& name) {
    for (const auto& tensor : step.optimizer_state())
      if (tensor.name == name) return on_host(tensor.tensor)[0];
    ADD_FAILURE() << "no " << name;
    return 0;
  }
  c10::Stream stream;
  c10::StreamGuard guard;
  workloads::TrainStep step;
};

TEST(GradientReduction, InBucketsBesideBackwardHasTheBitsOfOneReductionAfterIt) {
  for (const ModelConfig& config :
       {ModelConfig{.seq_length = 8, .microbatches = 2, .linear_bias = true},
        ModelConfig{.seq_length = 8, .microbatches = 1, .tied_embeddings = true},
        ModelConfig{.seq_length = 8, .microbatches = 2, .grad_accumulation_fusion = true}})
    ranks->for_each_layout([&](const Layout& layout) {
      Ran after(config, layout);
      ModelConfig overlapped = config;
      overlapped.overlap_grad_reduce = true;
      Ran beside(overlapped, layout);
      for (std::size_t i = 0; i < after.step.gradients().size(); ++i) {
        EXPECT_EQ(on_host(beside.step.gradients()[i].tensor), on_host(after.step.gradients()[i].tensor)) << after.step.gradients()[i].name;
        EXPECT_EQ(on_host(beside.step.parameters()[i].tensor), on_host(after.step.parameters()[i].tensor));
      }
    });
}

TEST(GradientReduction, BesideBackwardIsReplayedBitForBitUnderEveryEngine) {
  const ModelConfig config{.seq_length = 8, .microbatches = 2, .dropout = 0.1, .overlap_grad_reduce = true, .grad_accumulation_fusion = true};
  const std::vector<EngineConfig> engines = {
      {.impl = "manual", .warmup_steps = 1},
      {.impl = "full_iteration", .warmup_steps = 1},
      {.impl = "local", .warmup_steps = 1},
      {.impl = "local", .modules = {workloads::ModuleKind::attn}, .warmup_steps = 1},
      {.impl = "transformer_engine", .warmup_steps = 1},
      {.impl = "callables", .modules = {workloads::ModuleKind::mlp}, .warmup_steps = 1}};
  for (const EngineConfig& engine : engines)
    ranks->for_each_layout([&](const Layout& layout) {
      TwinSteps twins(config, layout, engine);
      for (std::int64_t i = 0; i < 3; ++i) EXPECT_EQ(difference(twins.step(i)), "") << engine.impl << " step " << i;
      EXPECT_EQ(twins.witness.canaries, 0) << engine.impl;
      twins.graph->drop_graphs();
    });
}

TEST(GradientReduction, FaultM11LeavesTheSideStreamUnjoinedAndTheCaptureIsRefused) {
  ranks->for_each_layout([&](const Layout& layout) {
    if (layout.dp == 1) return;
    TwinSteps twins({.microbatches = 1, .overlap_grad_reduce = true}, layout, {.impl = "full_iteration", .warmup_steps = 1, .fault = {"M11"}});
    twins.step(0);
    try {
      twins.graph->step(twins.batch(1), 0.1);
      ADD_FAILURE() << "captured";
    } catch (const capture::DeviceError& error) {
      EXPECT_EQ(error.code, 904) << error.what();
    }
  });
}

TEST(GradientClip, NormIsThatOfTheSingleRankModelInEveryLayout) {
  const ModelConfig config{.microbatches = 2, .qkv_bias = true, .linear_bias = true, .clip_grad = true};
  ranks->for_each_layout([&](const Layout& layout) {
    ModelConfig all = config;
    all.microbatches *= layout.dp;
    Ran parallel(config, layout), single(all, {}), faulty(config, layout, "M97");
    const double norm = single.state("state:clip.norm");
    EXPECT_GT(norm, workloads::kLargestGradientNorm) << "nothing would be clipped";
    // Reordered fp32 sums before it; the norm itself is summed in fp64.
    EXPECT_NEAR(parallel.state("state:clip.norm"), norm, 1e-4 * norm);
    EXPECT_EQ(std::abs(faulty.state("state:clip.norm") - norm) > 1e-3 * norm, layout.tp > 1) << "M97";
  });
}

TEST(LossScale, IsTheSameOnEveryRankAndM96MakesItDiffer) {
  const ModelConfig config{.seq_length = 8, .microbatches = 1, .precision = workloads::Precision::fp16};
  ranks->for_each_layout([&](const Layout& layout) {
    for (const char* fault : {"none", "M96"}) {
      constexpr std::int64_t kSteps = 5;  // some skipped and some taken
      Ran ran(config, layout, fault, kSteps);
      const at::Tensor mine = at::full({1}, ran.state("state:loss_scale.scale"));
      const auto scales = on_host(comm::all_gather(mine, layout.tp_group));
      for (std::size_t peer = 1; peer < scales.size(); ++peer) EXPECT_EQ(scales[peer] == scales[0], std::string(fault) == "none") << fault;
      EXPECT_GT(ran.state("state:loss_scale.skipped"), 0) << "the first steps overflow on purpose";
    }
  });
}

}  // namespace
}  // namespace graphproof::engines
