// Mixed precision as in Megatron-LM with --bf16, --fp16, --fp8-format or --fp4-format. Parameters,
// activations and their gradients have 16 bits. The gradient of a parameter is added, microbatch by
// microbatch, to an fp32 main gradient, which is reduced over ranks in fp32. The optimizer updates
// an fp32 master copy of each parameter and then rounds it to the 16-bit parameter. Norms, softmax,
// the router and the loss compute in fp32 and round their results. A captured graph therefore
// contains casts and parameters that only the optimizer writes. fp16 also scales the loss
// (loss_scale.h). With numbers of 8 or 4 bits everything is as with bf16, except the products of
// the linear layers (fp8_product.h, block_product.h). With fp64, which no axis has, everything is
// computed in fp64.
#pragma once

#include <ATen/ATen.h>

#include "workloads/config/model_config.h"

namespace graphproof::workloads {

/// The value of axis precision.
constexpr const char* name_of(Precision precision) {
  switch (precision) {
    case Precision::fp32:
      return "fp32";
    case Precision::bf16:
      return "bf16";
    case Precision::fp16:
      return "fp16";
    case Precision::fp8_delayed:
      return "fp8_delayed";
    case Precision::fp8_current:
      return "fp8_current";
    case Precision::mxfp8:
      return "mxfp8";
    case Precision::nvfp4:
      return "nvfp4";
    case Precision::fp64:
      return "fp64";
  }
  return "";
}

/// The scalar type of parameters and activations.
inline at::ScalarType scalar_type(Precision precision) {
  switch (precision) {
    case Precision::fp32:
      return at::kFloat;
    case Precision::bf16:
    case Precision::fp8_delayed:
    case Precision::fp8_current:
    case Precision::mxfp8:
    case Precision::nvfp4:
      return at::kBFloat16;
    case Precision::fp16:
      return at::kHalf;
    case Precision::fp64:
      return at::kDouble;
  }
  return at::kFloat;
}

/// The scalar type in which sums, norms, softmax, routers and the loss compute, for activations of
/// `type`: fp32, or fp64 if that is their type.
inline at::ScalarType wide_type(at::ScalarType type) {
  return type == at::kDouble ? at::kDouble : at::kFloat;
}
/// x in that type.
inline at::Tensor wide(const at::Tensor& x) { return x.to(wide_type(x.scalar_type())); }

}  // namespace graphproof::workloads
