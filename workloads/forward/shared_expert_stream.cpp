#include "workloads/forward/shared_expert_stream.h"

#include <ATen/Context.h>

#include <utility>

namespace graphproof::workloads {

SharedExpertStream::SharedExpertStream(capture::Device& device, faults::FaultHooks& faults)
    : side_(device.stream_from_pool(), faults::SideWork::shared_expert, faults) {}

SharedExpertStream::Beside SharedExpertStream::begin(
    const at::Tensor& hidden, const std::function<at::Tensor(const at::Tensor&)>& work) {
  side_.fork();
  // It is memory of the current stream, which knows nothing of who reads it on another one.
  hidden.detach().record_stream(side_.stream());
  const c10::StreamGuard guard(side_.stream());
  at::Tensor made = work(hidden);
  return {std::move(made), side_.record()};
}

at::Tensor SharedExpertStream::end(Beside beside) const {
  side_.join(beside.over);
  return beside.made;
}

MeantStreamMismatch::MeantStreamMismatch(bool overlapped)
    : warned_(at::globalContext().warnOnAccumulateGradStreamMismatch()) {
  if (overlapped) at::globalContext().setWarnOnAccumulateGradStreamMismatch(false);
}

MeantStreamMismatch::~MeantStreamMismatch() {
  at::globalContext().setWarnOnAccumulateGradStreamMismatch(warned_);
}

}  // namespace graphproof::workloads
