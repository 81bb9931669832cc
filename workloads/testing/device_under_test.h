// The device of a test program, sim or cuda depending on what is linked: one per process, made
// before the first tensor and never destroyed, because tensors of static lifetime inside LibTorch
// may outlive main.
#pragma once

#include "fixtures/device/device.h"
#include "fixtures/process/rank.h"
#include "fixtures/tensors/torch.h"

namespace graphproof::workloads {

inline capture::Device& device_under_test() {
  static capture::Device* device = [] {
    capture::Device* made = capture::make_device(fixtures::this_rank().gpu).release();
    made->autograd_threads(false);
    return made;
  }();
  return *device;
}

/// The elements of a tensor as floats, after waiting for the device.
inline std::vector<float> on_host(const at::Tensor& tensor) {
  device_under_test().synchronize();
  const at::Tensor copy = tensor.detach().contiguous().cpu().to(at::kFloat);
  return {copy.const_data_ptr<float>(), copy.const_data_ptr<float>() + copy.numel()};
}

}  // namespace graphproof::workloads
