// In which order a pipeline stage ran the forwards and backwards of its chunks, written in device memory where the work
// is enqueued: what a captured schedule really replays is not what the host says.
#pragma once

#include <cstdint>
#include <vector>

#include "fixtures/named_tensor.h"
#include "fixtures/torch.h"
#include "workloads/model_config.h"
#include "workloads/order/pipeline_turns.h"

namespace graphproof::workloads {

class ScheduleLedger {
 public:
  ScheduleLedger(const ModelConfig& config, const Layout& layout, at::Device device)
      : on_(layout.pp > 1), microbatches_(config.microbatches) {
    if (!on_) return;
    const auto options = at::TensorOptions().dtype(at::kLong).device(device);
    next_ = at::zeros({1}, options);
    ran_ = at::zeros({2 * layout.vpp * config.microbatches}, options);
  }

  /// Enqueues an empty list. At the start of a step.
  void begin_step() {
    if (!on_) return;
    next_.zero_();
    ran_.zero_();
  }
  /// Enqueues the note that `work` begins: chunk * M + microbatch + 1, a backward's with a minus.
  void note(const order::Work& work) {
    if (!on_) return;
    const at::NoGradGuard no_grad;
    const std::int64_t number = work.chunk * microbatches_ + work.microbatch + 1;
    ran_.index_fill_(0, next_, work.forward ? number : -number);
    next_.add_(1);
  }

  /// "schedule" [2 * chunks * M] int64 out, of the last step, static. Empty without a pipeline.
  std::vector<fixtures::NamedTensor> probes() const {
    if (!on_) return {};
    return {{"schedule", ran_}};
  }

 private:
  bool on_;
  std::int64_t microbatches_;
  at::Tensor next_, ran_;
};

}  // namespace graphproof::workloads
