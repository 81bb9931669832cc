// Clips gradients by the norm of all gradients of the model (Pascanu et al. 2013), like
// Megatron-LM's clip_grad_by_total_norm_fp32: each element of the model counts once, regardless of
// how many ranks hold it.
#pragma once

#include <ATen/ATen.h>

#include "workloads/config/model_config.h"
#include "workloads/faults/hooks/fault_hooks.h"
#include "workloads/parameters/parameters.h"

namespace graphproof::workloads {

/// The largest norm of the gradient of the whole model, as Megatron-LM's default of --clip-grad.
inline constexpr double kLargestGradientNorm = 1.0;

/// The clipping on one rank. Used by the thread that runs the step.
class GradientClip {
 public:
  /// `gradients` outlives it. `sharded`: elements that another data parallel rank owns are zero.
  GradientClip(const Parameters& parameters, const GradientBuffer& gradients, const Layout& layout,
               bool sharded, faults::FaultHooks& faults);

  /// Enqueues gradients *= min(1, kLargestGradientNorm / (norm + 1e-6)). May be captured.
  void clip();

  /// [1] fp32 out, static: the norm of the last step's gradients before clipping.
  const at::Tensor& norm() const { return norm_; }

 private:
  const GradientBuffer& gradients_;
  Layout layout_;
  const bool sharded_;
  /// [elements of shared()] fp32: 1 for an element that this rank counts, 0 if another rank does.
  at::Tensor shared_counted_;
  at::Tensor norm_;
};

}  // namespace graphproof::workloads
