// How much memory the graphs of each engine keep, beside what an eager step needs at its peak.
// Library workspaces take no part: the eager steps before a capture, on its stream and thread, have
// made them outside every pool.
#pragma once

#include <vector>

#include "fixtures/device/device.h"
#include "workloads/config/model_config.h"
#include "workloads/engines/speed/tables.h"

namespace graphproof::speed {

/// On one rank alone, one engine after the other, each in memory that the one before it has given
/// back. Nothing on a device whose allocator keeps no peaks.
std::vector<PoolRow> pool_bytes(capture::Device& device, const workloads::ModelConfig& model);

}  // namespace graphproof::speed
