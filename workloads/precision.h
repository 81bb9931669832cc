// Mixed precision as Megatron-LM trains with --bf16: parameters, activations and their gradients are bf16; the gradient
// of a parameter is added to an fp32 main gradient microbatch by microbatch and reduced over ranks in fp32; the optimizer
// moves an fp32 master of each parameter, from which the bf16 one is rounded after the step. Norms, softmax, the router
// and the loss compute in fp32 and round their result. So a capture holds casts, and parameters that only the optimizer
// writes.
#pragma once

#include <ATen/ATen.h>

#include "workloads/model_config.h"

namespace graphproof::workloads {

/// The type of parameters and activations.
inline at::ScalarType scalar_type(Precision precision) {
  return precision == Precision::bf16 ? at::kBFloat16 : at::kFloat;
}

}  // namespace graphproof::workloads
