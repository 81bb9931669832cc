// Mixed precision as Megatron-LM trains with --bf16 or --fp16: parameters, activations and their
// gradients are of 16 bits; the gradient of a parameter is added to an fp32 main gradient
// microbatch by microbatch and reduced over ranks in fp32; the optimizer moves an fp32 master of
// each parameter, from which the short one is rounded after the step. Norms, softmax, the router
// and the loss compute in fp32 and round their result. So a capture holds casts, and parameters
// that only the optimizer writes. fp16 needs a scaled loss besides (loss_scale.h).
#pragma once

#include <ATen/ATen.h>

#include "workloads/config/model_config.h"

namespace graphproof::workloads {

/// The word of axis precision.
constexpr const char* name_of(Precision precision) {
  switch (precision) {
    case Precision::fp32:
      return "fp32";
    case Precision::bf16:
      return "bf16";
    case Precision::fp16:
      return "fp16";
  }
  return "";
}

/// The type of parameters and activations.
inline at::ScalarType scalar_type(Precision precision) {
  switch (precision) {
    case Precision::fp32:
      return at::kFloat;
    case Precision::bf16:
      return at::kBFloat16;
    case Precision::fp16:
      return at::kHalf;
  }
  return at::kFloat;
}

}  // namespace graphproof::workloads
