// What shows that a part was computed again and came to the same: a count, and a sum of each
// result, in device memory, written by the forward and by its recompute wherever they run.
#pragma once

#include <vector>

#include "fixtures/tensors/named_tensor.h"
#include "fixtures/tensors/torch.h"
#include "workloads/config/model_config.h"
#include "workloads/forward/running_microbatch.h"

namespace graphproof::workloads {

/// Letters: P parts that are computed again, in order of RecomputeConfig::parts; R the layers of
/// this stage in which they are, those at the front of each chunk, chunk by chunk; M microbatches.
/// Mamba layers have no part but the whole.
class RecomputeLedger {
 public:
  RecomputeLedger(const ModelConfig& config, const Layout& layout, at::Device device)
      : config_(config), layout_(layout), parts_(config.recompute.parts) {
    if (parts_.empty()) return;
    const auto options = at::TensorOptions().device(device);
    const auto parts = static_cast<std::int64_t>(parts_.size());
    const std::int64_t layers =
        beside_mamba() ? layout.stage_layers(config) / 2 : layout.vpp * recomputed_of_chunk();
    running_ = RunningMicrobatch(config.microbatches, device);
    first_ = at::zeros({parts, config.microbatches, layers}, options.dtype(at::kDouble));
    again_ = at::zeros_like(first_);
    counts_ = at::zeros({parts, layers}, options.dtype(at::kLong));
  }

  /// Enqueues that what comes is of `microbatch`.
  void begin(std::int64_t microbatch) {
    if (!parts_.empty()) running_.begin(microbatch);
  }
  /// Enqueues the note of one run of `part` in layer `layer` with result `output` [any] float.
  /// Without effect for a part that is not computed again. `layer` counts in the whole model.
  void note(RecomputedPart part, std::int64_t layer, const at::Tensor& output, bool again) const {
    const auto found = std::find(parts_.begin(), parts_.end(), part);
    if (found == parts_.end()) return;
    const std::int64_t of_chunk = layout_.chunk_layers(config_),
                       place = layout_.place(config_, layer);
    if (place % of_chunk >= recomputed_of_chunk()) return;
    const std::int64_t row = found - parts_.begin();
    const std::int64_t column =
        beside_mamba() ? place / 2 : place / of_chunk * recomputed_of_chunk() + place % of_chunk;
    const at::NoGradGuard no_grad;
    // In fp64 and in a fixed order: equal sums of other values than the forward's would be a
    // coincidence.
    running_.write((again ? again_ : first_).select(0, row).select(1, column),
                   output.detach().sum(at::kDouble));
    if (again) counts_.select(0, row).select(0, column).add_(1);
  }

  /// "recompute:first" and "recompute:again" [P, M, R] fp64 out, of the last step. Empty without
  /// recompute.
  std::vector<fixtures::NamedTensor> probes() const {
    if (parts_.empty()) return {};
    return {{"recompute:first", first_}, {"recompute:again", again_}};
  }
  /// [P, R] int64: recomputes of each part of each layer since it was made; undefined without
  /// recompute.
  const at::Tensor& counts() const { return counts_; }

 private:
  bool beside_mamba() const { return config_.hybrid && !config_.recompute.full(); }
  std::int64_t recomputed_of_chunk() const {
    return config_.recompute.recomputed_layers(layout_.chunk_layers(config_));
  }

  ModelConfig config_;
  Layout layout_;
  std::vector<RecomputedPart> parts_;
  RunningMicrobatch running_;
  at::Tensor first_, again_, counts_;
};

}  // namespace graphproof::workloads
