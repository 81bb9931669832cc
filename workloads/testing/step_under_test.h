// For tests: a training step on one rank, the stream on which it was built and runs, and the first
// batch.
#pragma once

#include <numeric>

#include "workloads/faults/plant.h"
#include "workloads/testing/device_under_test.h"
#include "workloads/training/train_step.h"

namespace graphproof::workloads {

/// Owns the step; its stream is current while it exists.
struct StepUnderTest {
  static constexpr std::uint64_t kSeed = 11;

  explicit StepUnderTest(const ModelConfig& config, fixtures::Fault fault = fixtures::Fault::none)
      : device(device_under_test()),
        stream(device.stream_from_pool()),
        guard(stream),
        step(config, {}, device, kSeed, faults::plant(fault)),
        batch(make_batch(config, {}, kSeed, 0, device.torch_device())) {}

  /// Runs forward and backward and returns the mean loss over the microbatches.
  double mean_loss() {
    step.forward_backward(batch);
    const auto losses = on_host(step.losses());
    return std::accumulate(losses.begin(), losses.end(), 0.0) / static_cast<double>(losses.size());
  }

  capture::Device& device;
  c10::Stream stream;
  c10::StreamGuard guard;
  TrainStep step;
  Batch batch;
};

}  // namespace graphproof::workloads
