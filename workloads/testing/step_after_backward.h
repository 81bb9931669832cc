// For tests of layouts: a training step after one forward and backward, and the distance of two
// results.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "workloads/faults/plant.h"
#include "workloads/testing/device_under_test.h"
#include "workloads/training/data.h"
#include "workloads/training/train_step.h"

namespace graphproof::engines {

/// A training step on its own stream, after one forward and backward.
struct StepAfterBackward {
  StepAfterBackward(const workloads::ModelConfig& config, const workloads::Layout& layout,
                    fixtures::Fault fault = fixtures::Fault::none)
      : stream(workloads::device_under_test().stream_from_pool()),
        guard(stream),
        step(config, layout, workloads::device_under_test(), 1, faults::plant(fault)) {
    step.recording(true);  // some faults are planted only in a capture; nothing else reads it
    step.forward_backward(
        workloads::make_batch(config, layout, 1, 0, workloads::device_under_test().torch_device()));
  }
  at::Tensor gradient(const std::string& name) {
    for (const auto& [other, tensor] : step.gradients())
      if (other == name) return tensor;
    return {};
  }
  c10::Stream stream;
  c10::StreamGuard guard;
  workloads::TrainStep step;
};

/// The largest difference of an element, divided by the largest element of `want`.
inline double distance(const std::vector<float>& got, const std::vector<float>& want) {
  EXPECT_EQ(got.size(), want.size());
  double largest = 0, difference = 0;
  for (std::size_t i = 0; i < std::min(got.size(), want.size()); ++i) {
    largest = std::max<double>(largest, std::abs(want[i]));
    difference = std::max<double>(difference, std::abs(got[i] - want[i]));
  }
  EXPECT_GT(largest, 0);
  return difference / largest;
}

}  // namespace graphproof::engines
