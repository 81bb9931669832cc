// Activation recompute, as Megatron-LM's tensor parallel checkpoint: the forward keeps a part's
// inputs alone, and the backward runs the part again to get at what is inside. Inside a capture the
// second run is recorded like any other work, collectives included. Parts may nest: the inner one
// is then run once more by the outer one's second run.
//
// Unlike Megatron-LM's CheckpointWithoutOutput (layernorm, moe_act) the part's own output is kept
// by whoever consumes it.
#pragma once

#include <functional>
#include <vector>

#include "fixtures/tensors/torch.h"
#include "workloads/faults/hooks/fault_hooks.h"

namespace graphproof::workloads {

/// A part's work, enqueued on the current stream. `again`: this is the second run, in backward.
using RecomputedWork = faults::FaultHooks::RecomputedWork;

/// work(inputs), keeping `inputs` alone. Differentiable in them and in `parameters`, and these must
/// be all that `work` is differentiable in: another parameter that it used would get no gradient.
/// `work` is kept until the backward has run. The second run's gradients are handed on, none is
/// accumulated inside, so a capture by autograd::grad sees them.
at::Tensor recompute(const RecomputedWork& work, const std::vector<at::Tensor>& inputs,
                     const std::vector<at::Tensor>& parameters = {});

/// The same for a part of the model, which a planted fault may change.
inline at::Tensor recompute(RecomputedPart part, faults::FaultHooks& faults,
                            const RecomputedWork& work, const std::vector<at::Tensor>& inputs,
                            const std::vector<at::Tensor>& parameters = {}) {
  return recompute(faults.recomputed(part, work), inputs, parameters);
}

}  // namespace graphproof::workloads
