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

#include "fixtures/process/fault.h"
#include "workloads/training/data.h"

namespace graphproof::engines {

class StaticInputs {
 public:
  /// With `side`, later copies run on that stream, which waits for the current one and which the
  /// current one then waits for, as Megatron-LM's StaticBufferLoader does.
  StaticInputs(std::optional<c10::Stream> side, fixtures::Fault fault)
      : side_(side), fault_(std::move(fault)) {}

  /// Outside a capture. Throws std::invalid_argument, before it copies anything, for a batch that
  /// doesn't fit.
  void load(const workloads::Batch& fresh);
  /// The copies alone, on the current stream, for the speed floor. REQUIRES: a load() came first,
  /// and `fresh` fits.
  void copy(const workloads::Batch& fresh);
  const workloads::Batch& batch() const { return batch_; }

 private:
  void require_fit(const workloads::Batch& fresh) const;

  std::optional<c10::Stream> side_;
  fixtures::Fault fault_;
  workloads::Batch batch_;
  std::vector<workloads::Batch> forgotten_;  // M26 only
};

}  // namespace graphproof::engines
