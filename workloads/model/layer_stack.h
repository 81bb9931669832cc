// Runs the layers of a chunk one after the other, with full recompute: for a group of layers only
// the input is kept, and the backward runs the group again with the same random numbers
// (dropout.h).
#pragma once

#include <vector>

#include "fixtures/tensors/torch.h"
#include "workloads/config/recompute_config.h"
#include "workloads/model/layer.h"

namespace graphproof::workloads {

/// x [N/P, H] outside tensor parallel regions. Returns the same shape. `layers` outlives the
/// backward.
at::Tensor run_layers(const std::vector<Layer>& layers, at::Tensor x, const ForwardPass& pass,
                      const RecomputeConfig& config);

}  // namespace graphproof::workloads
