// Loss scaling for fp16 training (Micikevicius et al. 2018), as Megatron-LM's ConstantGradScaler
// and DynamicGradScaler. The loss is multiplied by a scale before the backward, so that small
// gradients are representable in fp16, and the fp32 main gradients are divided by it. A step with a
// gradient that is not finite on any rank is skipped on all ranks. The dynamic scale is then
// halved, and doubled after `growth_interval` good steps in a row.
//
// Megatron-LM reads on the host whether a gradient was infinite. Here the scale, that result and
// the counts are in device memory and a skipped step is arithmetic, so the same code works inside
// and outside a graph.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <string>
#include <vector>

#include "fixtures/tensors/named_tensor.h"
#include "workloads/config/model_config.h"
#include "workloads/faults/hooks/fault_hooks.h"

namespace graphproof::workloads {

/// The constants of a scale; factors and `least` are Megatron-LM's (--min-loss-scale).
struct LossScaleConstants {
  double initial, least = 1, backoff = 0.5, growth = 2;
  std::int64_t growth_interval;  // good steps in a row
};
/// The constants for a model of `config`. Megatron-LM starts at 2^32 and grows after 1,000 steps;
/// in a run of a few steps, every step would be skipped. The gradient of the logits is at most
/// scale / tokens of a step, and layers and sums over ranks made gradients 4 to 128 times larger in
/// random cases with up to eight layers and four ranks. Therefore the dynamic scale starts 2^5
/// below the one for which the logits' gradient just fits into fp16, and grows after each good
/// step, so that taken and skipped steps alternate from the second or third step on. The constant
/// scale is 2^10 below; with 2^8 a random case overflowed after some steps.
LossScaleConstants loss_scale_constants(const ModelConfig& config);

/// The loss scale of one rank. Used by the thread that runs the step.
class LossScale {
 public:
  /// `groups` are those of the ranks that hold different gradients (model parallel ranks). A group
  /// with the name "" or with one rank enqueues nothing. `faults` outlives it.
  LossScale(const ModelConfig& config, at::Device device, std::vector<std::string> groups,
            faults::FaultHooks& faults);

  /// [] fp32: the factor of the loss.
  const at::Tensor& scale() const { return scale_; }
  /// [] bool: whether a gradient of the last step was not finite on any rank of the groups.
  const at::Tensor& found() const { return found_; }

  /// Enqueues gradients /= scale, then found() over all ranks of the groups, then the scale of the
  /// next step. May be captured.
  ///   gradients  [elements] fp32 in and out  all of this rank
  void unscale(at::Tensor gradients);

  /// Static: "state:loss_scale.scale" [] fp32, ".good_steps" [] int64 in a row, ".skipped" [] int64
  /// skipped steps so far.
  std::vector<fixtures::NamedTensor> state() const;

 private:
  void next_scale();

  const bool dynamic_;
  const LossScaleConstants constants_;
  const std::vector<std::string> groups_;
  faults::FaultHooks& faults_;
  at::Tensor scale_, good_steps_, skipped_, found_;
};

}  // namespace graphproof::workloads
