#include "workloads/forward/shared_expert_stream.h"

#include <ATen/Context.h>

#include <utility>

namespace graphproof::workloads {

SharedExpertStream::SharedExpertStream(capture::Device& device, fixtures::Fault fault)
    : fault_(std::move(fault)), side_(device.stream_from_pool()) {}

SharedExpertStream::Beside SharedExpertStream::begin(
    const at::Tensor& hidden, bool recording,
    const std::function<at::Tensor(const at::Tensor&)>& work) {
  const c10::impl::VirtualGuardImpl streams(side_.device_type());
  Beside beside{{}, c10::Event(side_.device_type())};
  c10::Event ready(side_.device_type());
  ready.record(streams.getStream(side_.device()));
  // M140 stands for a stream that the capture does not reach: what runs on it is in no graph.
  if (!fault_.is("M140") || !recording) ready.block(side_);
  // It is memory of the current stream, which knows nothing of who reads it on another one.
  hidden.detach().record_stream(side_);
  const c10::StreamGuard guard(side_);
  beside.made = work(hidden);
  beside.over.record(side_);
  return beside;
}

at::Tensor SharedExpertStream::end(Beside beside) const {
  // M141 and M39 stand for a layer that adds the shared expert's part without waiting for it.
  // Backward joins the stream all the same, so a capture of both ends well (M39).
  if (!fault_.is("M141") && !fault_.is("M39"))
    beside.over.block(c10::impl::VirtualGuardImpl(side_.device_type()).getStream(side_.device()));
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
