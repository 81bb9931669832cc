// Loss scaling of fp16 training (Micikevicius et al. 2018), as Megatron-LM's ConstantGradScaler and
// DynamicGradScaler: the loss is multiplied by a scale before backward, so that small gradients
// survive fp16; the fp32 main gradients are divided by it; a step whose gradients are not finite
// somewhere is skipped on all ranks. The dynamic scale halves then, and doubles after
// `growth_interval` good steps in a row.
//
// Megatron-LM reads on the host whether anything was infinite. Here scale, verdict and counts live
// in device memory and a skipped step is arithmetic, so the same code runs inside a graph and
// outside.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <string>
#include <vector>

#include "fixtures/tensors/named_tensor.h"
#include "workloads/config/model_config.h"
#include "workloads/faults/hooks/fault_hooks.h"

namespace graphproof::workloads {

struct LossScaleConstants {
  double initial, least = 1, backoff = 0.5,
                  growth = 2;  // Megatron-LM's factors and --min-loss-scale
  std::int64_t growth_interval;
};
/// For a model of `config`. Megatron-LM begins at 2^32 and grows after 1,000 steps, which in a run
/// of a few steps would be one long row of skipped steps. The gradient of the logits is at most
/// scale / tokens of a step; layers and sums over ranks make it 4 to 128 times as much, as seen in
/// random cases of up to eight layers and four ranks. So the dynamic scale begins 2^5 below the one
/// for which the logits' just fits into fp16, and grows after each good step: steps are taken and
/// skipped in turn from the second or third on. The constant one is 2^10 below and never changes:
/// with 2^8 a random case overflowed after some steps.
LossScaleConstants loss_scale_constants(const ModelConfig& config);

class LossScale {
 public:
  /// `groups`: over which ranks that hold other gradients are spread (model parallel ones); one of
  /// the name "" or of one rank issues nothing. `faults` outlives it.
  LossScale(const ModelConfig& config, at::Device device, std::vector<std::string> groups,
            faults::FaultHooks& faults);

  /// [] fp32: what the loss is multiplied by.
  const at::Tensor& scale() const { return scale_; }
  /// [] bool: whether the last step met something that is not finite, on any rank of the groups.
  const at::Tensor& found() const { return found_; }

  /// Enqueues: gradients /= scale, found() over all ranks of the groups, then the scale of the next
  /// step. Capturable.
  ///   gradients  [elements] fp32 in and out  this rank's, all of them
  void unscale(at::Tensor gradients);

  /// Static: "state:loss_scale.scale" [] fp32, ".good_steps" [] int64 in a row, ".skipped" [] int64
  /// so far.
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
