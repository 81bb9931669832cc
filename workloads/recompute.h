// Activation recompute, as Megatron-LM's tensor parallel checkpoint: the forward keeps a part's inputs alone, and the
// backward runs the part again to get at what is inside. Inside a capture the second run is recorded like any other
// work.
#pragma once

#include <functional>

#include "fixtures/torch.h"

namespace graphproof::workloads {

/// A part's work on three inputs, enqueued on the current stream. `again`: this is the second run, in backward.
using RecomputedWork =
    std::function<at::Tensor(const at::Tensor& a, const at::Tensor& b, const at::Tensor& c, bool again)>;

/// work(a, b, c), keeping these three alone. Differentiable in all of them, and they must be all that `work` is
/// differentiable in: a parameter that it used would get no gradient. `work` is kept until the backward has run.
at::Tensor recompute(const RecomputedWork& work, const at::Tensor& a, const at::Tensor& b, const at::Tensor& c);

}  // namespace graphproof::workloads
