// Checks for NaN on the host, as Megatron-LM's check_for_nan_in_loss_and_grad: the host reads the
// loss after each microbatch's forward, and the gradients before they are reduced, bucket by bucket
// if they are reduced during the backward. Each check waits for the device, so it cannot be
// captured.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>

#include "workloads/config/model_config.h"
#include "workloads/faults/hooks/fault_hooks.h"

namespace graphproof::workloads {

/// The checks of one rank, and how many it has made. Used by the thread that runs the step.
class HostChecks {
 public:
  /// `faults` outlives it.
  HostChecks(const ModelConfig& config, faults::FaultHooks& faults);

  /// Checks a loss, if the configuration requires it. Throws std::runtime_error if it is not
  /// finite. The device refuses the read during a capture (capture::DeviceError 900).
  ///   value  [] fp32 in
  void loss(const at::Tensor& value, std::int64_t microbatch);
  /// Checks gradients in the same way.
  ///   gradients  [elements] fp32 in  some of this rank's; no pending work writes them
  void gradients(const at::Tensor& gradients);
  /// Ends a step with `elements` gradients. The step counts as checked if the host has read all of
  /// them.
  void end_step(std::int64_t elements);

  /// The number of losses that were checked so far, and the number of steps whose gradients were.
  std::int64_t losses_checked() const { return losses_; }
  std::int64_t gradients_checked() const { return gradients_; }

 private:
  bool due(bool by_configuration, std::int64_t looked) const;

  const bool check_loss_, check_gradients_;
  faults::FaultHooks& faults_;
  std::int64_t losses_ = 0, gradients_ = 0;
  std::int64_t elements_ = 0;  // the gradients of this step that were read
};

}  // namespace graphproof::workloads
