// What shows that core attention was computed again and came to the same: a count, and a sum of each result, in device
// memory, written by the forward and by its recompute wherever they run.
#pragma once

#include <vector>

#include "fixtures/named_tensor.h"
#include "fixtures/torch.h"
#include "workloads/model_config.h"

namespace graphproof::workloads {

class RecomputeLedger {
 public:
  RecomputeLedger(const ModelConfig& config, at::Device device) : on_(config.recompute_core_attention) {
    if (!on_) return;
    const auto options = at::TensorOptions().device(device);
    microbatch_ = at::zeros({1}, options.dtype(at::kLong));
    first_ = at::zeros({config.microbatches, config.layers}, options.dtype(at::kDouble));
    again_ = at::zeros_like(first_);
    counts_ = at::zeros({config.layers}, options.dtype(at::kLong));
  }

  /// Enqueues that what comes is of `microbatch`; a number in device memory, see Dropout::begin.
  void begin(std::int64_t microbatch) {
    if (on_) microbatch_.fill_(microbatch);
  }
  /// Enqueues the note of one run of layer `layer`'s core attention with result `output` [any] float.
  void note(std::int64_t layer, const at::Tensor& output, bool again) const {
    const at::NoGradGuard no_grad;
    // In fp64 and in a fixed order: equal sums of other values than the forward's would be a coincidence.
    const at::Tensor sum = output.detach().sum(at::kDouble).view({1});
    (again ? again_ : first_).select(1, layer).index_copy_(0, microbatch_, sum);
    if (again) counts_.select(0, layer).add_(1);
  }

  /// "recompute:first" and "recompute:again" [M, L] fp64 out, of the last step. Empty without recompute.
  std::vector<fixtures::NamedTensor> probes() const {
    if (!on_) return {};
    return {{"recompute:first", first_}, {"recompute:again", again_}};
  }
  /// [L] int64: recomputes of each layer since it was made; undefined without recompute.
  const at::Tensor& counts() const { return counts_; }

 private:
  bool on_;
  at::Tensor microbatch_, first_, again_, counts_;
};

}  // namespace graphproof::workloads
