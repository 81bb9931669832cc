#include "workloads/training/loss_scale.h"

#include <cmath>

#include "fixtures/comm/collectives.h"
#include "fixtures/tensors/torch.h"

namespace graphproof::workloads {

LossScaleConstants loss_scale_constants(const ModelConfig& config) {
  const auto tokens =
      static_cast<double>(config.microbatches * config.microbatch_size * config.seq_length);
  // 2^16 is the smallest power of two that fp16 cannot represent.
  const int largest = 16 + static_cast<int>(std::ceil(std::log2(tokens)));
  constexpr int kDynamicMargin = 5, kConstantMargin = 10;
  const int margin = config.loss_scaling == LossScaling::dynamic ? kDynamicMargin : kConstantMargin;
  return {.initial = std::ldexp(1.0, largest - margin), .growth_interval = 1};
}

LossScale::LossScale(const ModelConfig& config, at::Device device, std::vector<std::string> groups,
                     faults::FaultHooks& faults)
    : dynamic_(config.loss_scaling == LossScaling::dynamic),
      constants_(loss_scale_constants(config)),
      groups_(std::move(groups)),
      faults_(faults) {
  const auto options = at::TensorOptions().device(device);
  scale_ = at::full({}, constants_.initial, options.dtype(at::kFloat));
  good_steps_ = at::zeros({}, options.dtype(at::kLong));
  skipped_ = at::zeros({}, options.dtype(at::kLong));
  found_ = at::zeros({}, options.dtype(at::kBool));
}

void LossScale::unscale(at::Tensor gradients) {
  const at::NoGradGuard no_grad;
  gradients.mul_(scale_.reciprocal());
  at::Tensor anywhere = at::isfinite(gradients).logical_not().any().to(at::kFloat).view({1});
  if (!faults_.decides_alone(anywhere))
    for (const std::string& group : groups_)
      if (comm::group_size(group) > 1) comm::all_reduce_(anywhere, group);
  found_.copy_(anywhere.squeeze(0).gt(0));
  skipped_.add_(found_);
  if (dynamic_) next_scale();
}

void LossScale::next_scale() {
  good_steps_.add_(1).masked_fill_(found_, 0);
  const at::Tensor grown = good_steps_.eq(constants_.growth_interval);
  const at::Tensor lower = (scale_ * constants_.backoff).clamp_min(constants_.least);
  scale_.copy_(at::where(found_, lower, at::where(grown, scale_ * constants_.growth, scale_)));
  good_steps_.masked_fill_(grown, 0);
}

std::vector<fixtures::NamedTensor> LossScale::state() const {
  return {{"state:loss_scale.scale", scale_},
          {"state:loss_scale.good_steps", good_steps_},
          {"state:loss_scale.skipped", skipped_}};
}

}  // namespace graphproof::workloads
