#include "workloads/forward/shared_expert_stream.h"

#include <ATen/Context.h>

#include <utility>

namespace graphproof::workloads {

SharedExpertStream::SharedExpertStream(capture::Device& device, faults::FaultHooks& faults)
    : side_(device.stream_from_pool(), faults::SideWork::shared_expert, faults) {}

SharedExpertStream::Running SharedExpertStream::begin(
    const at::Tensor& hidden, const std::function<at::Tensor(const at::Tensor&)>& work) {
  side_.fork();
  // `hidden` is memory of the current stream, whose allocator does not know of reads on the side
  // stream.
  hidden.detach().record_stream(side_.stream());
  const c10::StreamGuard guard(side_.stream());
  at::Tensor output = work(hidden);
  return {std::move(output), side_.record()};
}

at::Tensor SharedExpertStream::end(Running running) const {
  side_.join(running.done);
  return running.output;
}

SilenceStreamMismatchWarning::SilenceStreamMismatchWarning(bool overlapped)
    : warned_(at::globalContext().warnOnAccumulateGradStreamMismatch()) {
  if (overlapped) at::globalContext().setWarnOnAccumulateGradStreamMismatch(false);
}

SilenceStreamMismatchWarning::~SilenceStreamMismatchWarning() {
  at::globalContext().setWarnOnAccumulateGradStreamMismatch(warned_);
}

}  // namespace graphproof::workloads
