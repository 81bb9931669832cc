// The inputs of a graph: tensors at fixed addresses into which each step's batch is copied before
// the replay.
//
// Contract: the first batch is cloned; later ones are copied into the clones, without waiting for
// the host; nothing of the caller's batch is kept. A batch with another number of microbatches or
// another shape is refused, because a graph has its shapes for good.
#pragma once

#include <c10/core/Stream.h>

#include <optional>
#include <vector>

#include "workloads/streams/side_stream.h"
#include "workloads/training/data.h"

namespace graphproof::engines {

class StaticInputs {
 public:
  /// With `side`, later copies run on that stream, which waits for the current one and which the
  /// current one then waits for, as Megatron-LM's StaticBufferLoader does. `faults` outlives it.
  StaticInputs(std::optional<c10::Stream> side, faults::FaultHooks& faults) : faults_(faults) {
    if (side) side_.emplace(*side, faults::SideWork::input_copies, faults);
  }

  /// Outside a capture. Throws std::invalid_argument, before it copies anything, for a batch that
  /// doesn't fit.
  void load(const workloads::Batch& fresh);
  /// The copies alone, on the current stream, for the speed floor. REQUIRES: a load() came first,
  /// and `fresh` fits.
  void copy(const workloads::Batch& fresh);
  const workloads::Batch& batch() const { return batch_; }

 private:
  void require_fit(const workloads::Batch& fresh) const;

  faults::FaultHooks& faults_;
  std::optional<workloads::SideStream> side_;
  workloads::Batch batch_;
};

}  // namespace graphproof::engines
