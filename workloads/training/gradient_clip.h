// Clipping by the norm of all gradients of the model (Pascanu et al. 2013), as Megatron-LM's
// clip_grad_by_total_norm_fp32: each element of the model counts once, however many ranks hold it.
#pragma once

#include <ATen/ATen.h>

#include "workloads/config/model_config.h"
#include "workloads/faults/hooks/fault_hooks.h"
#include "workloads/parameters/parameters.h"

namespace graphproof::workloads {

/// Of the gradient vector of the whole model: 1 as Megatron-LM's --clip-grad default.
inline constexpr double kLargestGradientNorm = 1.0;

class GradientClip {
 public:
  /// `gradients` outlives it. `sharded`: it is zero where another data parallel rank owns an
  /// element.
  GradientClip(const Parameters& parameters, const GradientBuffer& gradients, const Layout& layout,
               bool sharded, faults::FaultHooks& faults);

  /// Enqueues: gradients *= min(1, kLargestGradientNorm / (norm + 1e-6)). Capturable.
  void clip();

  /// [1] fp32 out, static: of the last step's gradients, before clipping.
  const at::Tensor& norm() const { return norm_; }

 private:
  const GradientBuffer& gradients_;
  Layout layout_;
  const bool sharded_;
  at::Tensor shared_counted_;  // [elements of shared()] fp32: 1 where this rank counts, 0 where
                               // another does
  at::Tensor norm_;
};

}  // namespace graphproof::workloads
