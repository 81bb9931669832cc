// Runs the shared expert on a side stream, concurrently with the dispatch of its layer's tokens
// (Megatron-LM's --moe-shared-expert-overlap). The side stream forks after the router and is joined
// before the results of the experts are added. The backward runs on the same stream, because
// autograd uses the stream of the forward and orders the two streams wherever a gradient crosses.
#pragma once

#include <c10/core/Event.h>

#include <functional>

#include "fixtures/device/device.h"
#include "fixtures/tensors/torch.h"
#include "workloads/streams/side_stream.h"

namespace graphproof::workloads {

/// Used by the thread that runs the step.
class SharedExpertStream {
 public:
  /// `faults` outlives it.
  SharedExpertStream(capture::Device& device, faults::FaultHooks& faults);

  /// Work in progress and its output.
  struct Running {
    at::Tensor output;
    c10::Event done;
  };
  /// Enqueues work(hidden) on the side stream, after all work of the current stream so far. The
  /// memory of `hidden` is not reused before that work has ended.
  Running begin(const at::Tensor& hidden, const std::function<at::Tensor(const at::Tensor&)>& work);
  /// Makes the current stream wait for the work and returns its output. The output is memory of the
  /// side stream: a later begin() may reuse it as soon as no tensor refers to it.
  at::Tensor end(Running running) const;

 private:
  SideStream side_;
};

/// While it lives, autograd does not warn that a weight's gradient is computed on another stream
/// than the one it is accumulated on, if `overlapped` is set. With an overlapped shared expert that
/// is intended, and autograd orders the two streams. Needed around every backward that may contain
/// a shared expert.
class SilenceStreamMismatchWarning {
 public:
  explicit SilenceStreamMismatchWarning(bool overlapped);
  ~SilenceStreamMismatchWarning();
  SilenceStreamMismatchWarning(const SilenceStreamMismatchWarning&) = delete;
  SilenceStreamMismatchWarning& operator=(const SilenceStreamMismatchWarning&) = delete;

 private:
  const bool warned_;
};

}  // namespace graphproof::workloads
