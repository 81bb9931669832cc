// The inputs of a graph: tensors at fixed addresses into which the batch of each step is copied
// before the replay.
//
// Contract: the first batch is cloned. Later batches are copied into the clones, without a host
// wait. The caller's tensors are not kept. A batch with another number of microbatches or another
// shape is refused, because a graph cannot change its shapes, and so is one that has tensors which
// the first batch lacked, or lacks some (Megatron-LM's loader allocates a key that comes late and
// captures nothing anew, so its graph never reads it).
#pragma once

#include <c10/core/Stream.h>

#include <optional>
#include <vector>

#include "workloads/streams/side_stream.h"
#include "workloads/training/data.h"

namespace graphproof::engines {

/// The static inputs of one graph. Used by the engine's thread.
class StaticInputs {
 public:
  /// With `side`, later copies run on that stream. It waits for the current stream, and the current
  /// stream then waits for it, as in Megatron-LM's StaticBufferLoader. `faults` outlives it.
  StaticInputs(std::optional<c10::Stream> side, faults::FaultHooks& faults) : faults_(faults) {
    if (side) side_.emplace(*side, faults::SideWork::input_copies, faults);
  }

  /// Enqueues the copies of a batch. Outside a capture. Throws std::invalid_argument, before it
  /// copies anything, for a batch that does not fit.
  void load(const workloads::Batch& fresh);
  /// Enqueues only the copies, on the current stream, for the speed floor. REQUIRES: an earlier
  /// load(), and that `fresh` fits.
  void copy(const workloads::Batch& fresh);
  const workloads::Batch& batch() const { return batch_; }

 private:
  void require_fit(const workloads::Batch& fresh) const;

  faults::FaultHooks& faults_;
  std::optional<workloads::SideStream> side_;
  workloads::Batch batch_;
};

}  // namespace graphproof::engines
