// How much memory the graphs of each engine keep, compared with the peak of an eager step.
// Workspaces of libraries are not included: the eager steps before a capture, on its stream and
// thread, have allocated them outside every pool.
#pragma once

#include <vector>

#include "fixtures/device/device.h"
#include "workloads/config/model_config.h"
#include "workloads/engines/speed/tables.h"

namespace graphproof::speed {

/// Measures one engine after another on a single rank; each has released its memory before the next
/// one starts. Empty on a device whose allocator records no peaks.
std::vector<PoolRow> pool_bytes(capture::Device& device, const workloads::ModelConfig& model);

}  // namespace graphproof::speed
