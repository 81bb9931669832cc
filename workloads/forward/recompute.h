// Activation recompute, as in Megatron-LM's tensor parallel checkpoint: the forward keeps only the
// inputs of a part, and the backward runs the part again to obtain the activations inside. In a
// capture the second run is recorded like any other work, collectives included. Parts may nest; the
// second run of the outer part then runs the inner part again as well.
//
// Unlike with Megatron-LM's CheckpointWithoutOutput (layernorm, moe_act), the consumer of a part's
// output keeps that output.
#pragma once

#include <functional>
#include <vector>

#include "fixtures/tensors/torch.h"
#include "workloads/faults/hooks/fault_hooks.h"

namespace graphproof::workloads {

/// The work of a part, enqueued on the current stream. `again` is true for the second run, in
/// backward.
using RecomputedWork = faults::FaultHooks::RecomputedWork;

/// Returns work(inputs) and keeps only `inputs` for the backward. Differentiable in `inputs` and
/// `parameters`; any other parameter that `work` uses gets no gradient. `work` is kept until the
/// backward has run. The second run has the autocast of the first. The gradients of the second run
/// are returned and not accumulated inside, so a capture that uses autograd::grad gets them.
at::Tensor recompute(const RecomputedWork& work, const std::vector<at::Tensor>& inputs,
                     const std::vector<at::Tensor>& parameters = {});

/// The same for a part of the model, which a planted fault may change.
inline at::Tensor recompute(RecomputedPart part, faults::FaultHooks& faults,
                            const RecomputedWork& work, const std::vector<at::Tensor>& inputs,
                            const std::vector<at::Tensor>& parameters = {}) {
  return recompute(faults.recomputed(part, work), inputs, parameters);
}

}  // namespace graphproof::workloads
