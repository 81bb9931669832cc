// The host's checks for NaN, as Megatron-LM's check_for_nan_in_loss_and_grad: after each
// microbatch's forward the host reads the loss, and before gradients are reduced it reads them, a
// bucket at a time where they are reduced under backward. Each one waits for the device, so no
// capture can hold it.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>

#include "workloads/config/model_config.h"
#include "workloads/faults/hooks/fault_hooks.h"

namespace graphproof::workloads {

class HostChecks {
 public:
  /// `faults` outlives it.
  HostChecks(const ModelConfig& config, faults::FaultHooks& faults);

  /// Both throw std::runtime_error for a number that is not finite, without effect where the
  /// configuration does not ask. Refused by the device (capture::DeviceError 900) while the stream
  /// captures.
  ///   value  [] fp32 in
  void loss(const at::Tensor& value, std::int64_t microbatch);
  ///   gradients  [elements] fp32 in  some of this rank's, that nothing is about to write
  void gradients(const at::Tensor& gradients);
  /// Ends a step of `elements` gradients: it was checked if the host looked at each of them.
  void end_step(std::int64_t elements);

  /// Losses that were looked at so far, and steps whose gradients were.
  std::int64_t losses_checked() const { return losses_; }
  std::int64_t gradients_checked() const { return gradients_; }

 private:
  bool asked(bool by_configuration, std::int64_t looked) const;

  const bool check_loss_, check_gradients_;
  faults::FaultHooks& faults_;
  std::int64_t losses_ = 0, gradients_ = 0;
  std::int64_t elements_ = 0;  // of this step's gradients, looked at
};

}  // namespace graphproof::workloads
