// Records the order in which a pipeline stage runs the forwards and backwards of its chunks, or of
// their layers. The entries are written to device memory by operations that are enqueued with the
// work, so they show what a captured schedule really replays.
#pragma once

#include <cstdint>
#include <vector>

#include "fixtures/tensors/named_tensor.h"
#include "fixtures/tensors/torch.h"
#include "workloads/config/model_config.h"
#include "workloads/pipeline/pipeline_schedule.h"

namespace graphproof::workloads {

/// The ledger of one rank. Used by the thread that runs the step; enqueues on the current stream.
class ScheduleLedger {
 public:
  ScheduleLedger(const ModelConfig& config, const Layout& layout, at::Device device)
      : on_(layout.pp > 1 || config.overlap_ep_comm),
        by_layer_(config.overlap_ep_comm),
        microbatches_(config.microbatches) {
    if (!on_) return;
    const auto options = at::TensorOptions().dtype(at::kLong).device(device);
    next_ = at::zeros({1}, options);
    const std::int64_t of_microbatch =
        by_layer_ ? (config.delay_wgrad ? 3 : 2) *
                        (layout.stage_layers(config) + layout.mtp_layers(config))
                  : 2 * layout.vpp;
    order_ = at::zeros({of_microbatch * config.microbatches}, options);
  }

  /// Enqueues the clearing of the list, at the start of a step.
  void begin_step() {
    if (!on_) return;
    next_.zero_();
    order_.zero_();
  }
  /// Enqueues the entry of `work`: chunk * M + microbatch + 1, negated for a backward.
  void note(const order::Work& work) {
    if (!on_ || by_layer_) return;
    const std::int64_t number = work.chunk * microbatches_ + work.microbatch + 1;
    append(work.forward ? number : -number);
  }
  /// Enqueues the entry of a layer, number `place` of this stage, in a step that runs layer by
  /// layer: 2 * place * M + microbatch + 1, negated for a backward; for delayed weight gradients
  /// -((2 * place + 1) * M + microbatch + 1).
  enum class LayerWork { forward, backward, weight_gradients };
  void note(LayerWork work, std::int64_t place, std::int64_t microbatch) {
    const std::int64_t number =
        (2 * place + (work == LayerWork::weight_gradients ? 1 : 0)) * microbatches_ + microbatch +
        1;
    append(work == LayerWork::forward ? number : -number);
  }

  /// "schedule" int64 out, static, of the last step: [2 * chunks * M]; layer by layer [2 * layers *
  /// M], or [3 * layers * M] with delayed weight gradients. Empty without a pipeline and without
  /// layer by layer.
  std::vector<fixtures::NamedTensor> tensors() const {
    if (!on_) return {};
    return {{"schedule", order_}};
  }

 private:
  void append(std::int64_t number) {
    const at::NoGradGuard no_grad;
    order_.index_fill_(0, next_, number);
    next_.add_(1);
  }

  bool on_, by_layer_;
  std::int64_t microbatches_;
  at::Tensor next_, order_;
};

}  // namespace graphproof::workloads
