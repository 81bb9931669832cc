// Offloaded activations: the same bytes as without, from graphs of whole passes too.
#include "workloads/forward/activation_offload.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "workloads/testing/twin_steps.h"

namespace graphproof::engines::activation_offload_test {
namespace {

using workloads::ModelConfig;

constexpr std::int64_t kWarmup = 2;

ModelConfig offloading_model() {
  ModelConfig config{.hidden = 32, .ffn = 64, .vocab = 64, .seq_length = 8, .microbatches = 2};
  config.cpu_offload = true;
  return config;
}

TEST(ActivationOffload, GradientsReadWhatTheForwardCopiedToTheHost) {
  capture::Device& device = workloads::device_under_test();
  const c10::Stream stream = device.stream_from_pool();
  const c10::StreamGuard guard(stream);
  faults::FaultHooks sound;
  workloads::ActivationOffload offload(device, sound);
  const auto options = at::TensorOptions().dtype(at::kFloat).device(device.torch_device());
  const at::Tensor x = at::full({3, 4}, 0.5, options).requires_grad_(true),
                   w = at::full({2, 4}, 2.0, options).requires_grad_(true);
  const at::Tensor y = workloads::offloaded_product(x, w, offload);
  offload.finish();
  device.synchronize();
  ASSERT_EQ(offload.buffers().size(), 1u);
  EXPECT_TRUE(offload.buffers()[0].is_pinned());
  EXPECT_EQ(workloads::on_host(offload.buffers()[0]), std::vector<float>(12, 0.5f));
  offload.buffers()[0].fill_(0.25);
  torch::autograd::backward({y.sum()}, {});
  EXPECT_EQ(workloads::on_host(w.grad()), std::vector<float>(8, 3 * 0.25f)) << "of the buffer";
  EXPECT_EQ(workloads::on_host(x.grad()), std::vector<float>(12, 2 * 2.0f));
}

TEST(ActivationOffload, ChangesNoBitOfAStepAndReplaysEqualIt) {
  ModelConfig cast = offloading_model(), short_numbers = offloading_model(),
              hybrid = offloading_model();
  cast.autocast = true;
  cast.dropout = 0.1;
  short_numbers.precision = workloads::Precision::bf16;
  short_numbers.linear_bias = true;
  hybrid.hybrid = true;
  for (const char* impl : {"full_iteration", "manual"})
    for (const ModelConfig& config : {offloading_model(), cast, short_numbers, hybrid}) {
      SCOPED_TRACE(impl);
      ModelConfig kept = config;
      kept.cpu_offload = false;
      TwinSteps twins(config, {}, {.impl = impl, .warmup_steps = kWarmup});
      TwinSteps without(kept, {}, {.impl = impl, .warmup_steps = kWarmup});
      for (std::int64_t i = 0; i < 5; ++i) {
        EXPECT_EQ(difference(twins.step(i)), "") << "step " << i;
        without.step(i);
        EXPECT_EQ(workloads::on_host(twins.graph->losses()),
                  workloads::on_host(without.graph->losses()))
            << "step " << i;
      }
      EXPECT_EQ(twins.witness.canaries, 0);
      EXPECT_TRUE(twins.witness.moved_tensors.empty());
      twins.graph->drop_graphs();
      without.graph->drop_graphs();
    }
}

TEST(ActivationOffload, CountsWhatEagerStepsAndReplaysCopy) {
  for (const char* impl : {"full_iteration", "manual"}) {
    SCOPED_TRACE(impl);
    TwinSteps twins(offloading_model(), {}, {.impl = impl, .warmup_steps = kWarmup});
    const auto counts = [&](workloads::TrainStep& step) {
      const auto found = step.offload()->counts();
      return std::vector{found.buffers, found.pinned, found.written, found.fetched};
    };
    twins.step(0);
    for (std::int64_t i = 1; i < 5; ++i) {
      twins.eager_step().offload()->mark();
      twins.graph_step().offload()->mark();
      EXPECT_EQ(counts(twins.graph_step()), (std::vector<std::int64_t>{9, 9, 0, 0}));
      twins.step(i);
      const std::vector<std::int64_t> all{9, 9, 9, 18};
      EXPECT_EQ(counts(twins.eager_step()), all) << "step " << i;
      EXPECT_EQ(counts(twins.graph_step()), all) << "step " << i;
    }
    twins.graph->drop_graphs();
  }
  TwinSteps lost(offloading_model(), {}, {.impl = "manual", .warmup_steps = kWarmup},
                 fixtures::Fault::activations_not_offloaded);
  EXPECT_EQ(lost.graph_step().offload(), nullptr);
}

TEST(ActivationOffload, ACaptureBeforeAnyEagerStepIsRefused) {
  TwinSteps twins(offloading_model(), {}, {.impl = "full_iteration", .warmup_steps = 0});
  try {
    twins.step(0);
    FAIL() << "captured";
  } catch (const std::exception& error) {
    EXPECT_NE(std::string(error.what()).find("no host buffer of its shape and type"),
              std::string::npos)
        << error.what();
  }
}

TEST(ActivationOffload, WhatItDoesNotKeepIsRefused) {
  ModelConfig recomputed = offloading_model(), experts = offloading_model(),
              fused = offloading_model();
  recomputed.recompute = workloads::full(workloads::RecomputeConfig::Method::uniform, 1);
  experts.experts = 4;
  experts.topk = 2;
  fused.grad_accumulation_fusion = true;
  for (const ModelConfig& config : {recomputed, experts, fused}) {
    try {
      workloads::TrainStep step(config, {}, workloads::device_under_test(), 1, {});
      FAIL() << "accepted";
    } catch (const std::invalid_argument& error) {
      EXPECT_NE(std::string(error.what()).find("activation offload: got "), std::string::npos)
          << error.what();
      EXPECT_NE(std::string(error.what()).find("next: "), std::string::npos) << error.what();
    }
  }
}

}  // namespace
}  // namespace graphproof::engines::activation_offload_test
