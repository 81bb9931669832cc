// Shows that a part was recomputed with the same result: a count of the recomputes and the sum of
// each result, in device memory, written by the forward and by the recompute, in graphs as well.
#pragma once

#include <vector>

#include "fixtures/tensors/named_tensor.h"
#include "fixtures/tensors/torch.h"
#include "workloads/config/model_config.h"
#include "workloads/forward/running_microbatch.h"

namespace graphproof::workloads {

/// P recomputed parts, in the order of RecomputeConfig::parts; R layers of this stage that have
/// them, at the front of each chunk, chunk by chunk, then those of multi-token prediction; M
/// microbatches. The only part of a mamba layer
/// is the whole layer. Tensors are static; methods enqueue on the current stream.
class RecomputeLedger {
 public:
  RecomputeLedger(const ModelConfig& config, const Layout& layout, at::Device device)
      : config_(config), layout_(layout), parts_(config.recompute.parts) {
    if (parts_.empty()) return;
    const auto options = at::TensorOptions().device(device);
    const auto parts = static_cast<std::int64_t>(parts_.size());
    const std::int64_t layers =
        of_decoder() + (config.recompute.of_prediction_layers() ? layout.mtp_layers(config) : 0);
    running_ = RunningMicrobatch(config.microbatches, device);
    first_ = at::zeros({parts, config.microbatches, layers}, options.dtype(at::kDouble));
    again_ = at::zeros_like(first_);
    counts_ = at::zeros({parts, layers}, options.dtype(at::kLong));
  }

  /// The work enqueued from now on belongs to `microbatch`.
  void begin(std::int64_t microbatch) const {
    if (!parts_.empty()) running_.begin(microbatch);
  }
  /// Records one run of `part` in `layer` (index in the whole model) with result `output` [any]
  /// float. Does nothing for a part that is not recomputed.
  void note(RecomputedPart part, std::int64_t layer, const at::Tensor& output, bool again) const {
    const auto found = std::find(parts_.begin(), parts_.end(), part);
    if (found == parts_.end()) return;
    const bool predicts = layer >= config_.layers;
    const std::int64_t of_chunk = layout_.chunk_layers(config_),
                       place = layout_.place(config_, layer);
    if (!predicts && place % of_chunk >= recomputed_of_chunk()) return;
    const std::int64_t row = found - parts_.begin();
    const std::int64_t column = predicts ? of_decoder() + layer - config_.layers
                                : only_transformer_layers()
                                    ? place / 2
                                    : place / of_chunk * recomputed_of_chunk() + place % of_chunk;
    const at::NoGradGuard no_grad;
    // A sum in fp64 in a fixed order: different values are very unlikely to have the same sum.
    running_.write((again ? again_ : first_).select(0, row).select(1, column),
                   output.detach().sum(at::kDouble));
    if (again) counts_.select(0, row).select(0, column).add_(1);
  }

  /// "recompute:first" and "recompute:again" [P, M, R] fp64: the sums of the last step. Empty
  /// without recompute.
  std::vector<fixtures::NamedTensor> tensors() const {
    if (parts_.empty()) return {};
    return {{"recompute:first", first_}, {"recompute:again", again_}};
  }
  /// [P, R] int64: recomputes of each part of each layer since the construction; undefined without
  /// recompute.
  const at::Tensor& counts() const { return counts_; }

 private:
  /// R without the layers of multi-token prediction.
  std::int64_t of_decoder() const {
    return only_transformer_layers() ? layout_.stage_layers(config_) / 2
                                     : layout_.vpp * recomputed_of_chunk();
  }
  bool only_transformer_layers() const { return config_.hybrid && !config_.recompute.full(); }
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
