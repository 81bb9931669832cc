// In which order a pipeline stage ran the forwards and backwards of its chunks, or of their layers,
// written in device memory where the work is enqueued: what a captured schedule really replays is
// not what the host says.
#pragma once

#include <cstdint>
#include <vector>

#include "fixtures/tensors/named_tensor.h"
#include "fixtures/tensors/torch.h"
#include "workloads/config/model_config.h"
#include "workloads/pipeline/pipeline_schedule.h"

namespace graphproof::workloads {

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
        by_layer_ ? (config.delay_wgrad ? 3 : 2) * layout.stage_layers(config) : 2 * layout.vpp;
    ran_ = at::zeros({of_microbatch * config.microbatches}, options);
  }

  /// Enqueues an empty list. At the start of a step.
  void begin_step() {
    if (!on_) return;
    next_.zero_();
    ran_.zero_();
  }
  /// Enqueues the note that `work` begins: chunk * M + microbatch + 1, a backward's with a minus.
  void note(const order::Work& work) {
    if (!on_ || by_layer_) return;
    const std::int64_t number = work.chunk * microbatches_ + work.microbatch + 1;
    append(work.forward ? number : -number);
  }
  /// The same of a layer, by its place in this stage, in a step that runs layer by layer: 2 * place
  /// * M + microbatch + 1, with a minus the backward's; the delayed weight gradients' is -((2 *
  /// place + 1) * M + microbatch + 1).
  enum class LayerWork { forward, backward, weight_gradients };
  void note(LayerWork work, std::int64_t place, std::int64_t microbatch) {
    const std::int64_t number =
        (2 * place + (work == LayerWork::weight_gradients ? 1 : 0)) * microbatches_ + microbatch +
        1;
    append(work == LayerWork::forward ? number : -number);
  }

  /// "schedule" int64 out, of the last step, static: [2 * chunks * M], or layer by layer [2 *
  /// layers * M], with delayed weight gradients [3 * layers * M]. Empty without either schedule.
  std::vector<fixtures::NamedTensor> probes() const {
    if (!on_) return {};
    return {{"schedule", ran_}};
  }

 private:
  void append(std::int64_t number) {
    const at::NoGradGuard no_grad;
    ran_.index_fill_(0, next_, number);
    next_.add_(1);
  }

  bool on_, by_layer_;
  std::int64_t microbatches_;
  at::Tensor next_, ran_;
};

}  // namespace graphproof::workloads
