// A stream of its own for the shared expert, so that it runs beside the dispatch of its layer's
// tokens, as Megatron-LM's
// --moe-shared-expert-overlap. It forks behind the router and is joined before its result is added
// to the experts'. Its backward runs on the same stream: autograd takes that of the forward, and
// orders the two streams wherever a gradient passes.
#pragma once

#include <c10/core/Event.h>

#include <functional>

#include "fixtures/device/device.h"
#include "fixtures/tensors/torch.h"
#include "workloads/streams/side_stream.h"

namespace graphproof::workloads {

class SharedExpertStream {
 public:
  /// `faults` outlives it.
  SharedExpertStream(capture::Device& device, faults::FaultHooks& faults);

  /// Under way.
  struct Beside {
    at::Tensor made;
    c10::Event over;
  };
  /// Enqueues work(hidden) on the stream, behind all work of the current one so far. Memory of
  /// `hidden` is not given to anybody else before that work has ended.
  Beside begin(const at::Tensor& hidden, const std::function<at::Tensor(const at::Tensor&)>& work);
  /// Makes the current stream wait for it. Returns what it made, which the next begin() may
  /// overwrite once nothing holds it.
  at::Tensor end(Beside beside) const;

 private:
  SideStream side_;
};

/// While it lives, and with an overlapped shared expert, autograd does not warn that weights get
/// their gradients on another stream than they accumulate them on: it orders the two, and here that
/// is meant. Wherever a backward runs that may hold one.
class MeantStreamMismatch {
 public:
  explicit MeantStreamMismatch(bool overlapped);
  ~MeantStreamMismatch();
  MeantStreamMismatch(const MeantStreamMismatch&) = delete;
  MeantStreamMismatch& operator=(const MeantStreamMismatch&) = delete;

 private:
  const bool warned_;
};

}  // namespace graphproof::workloads
