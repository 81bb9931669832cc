// The optimizer, with what stands between reduced gradients and their use: the loss scale is taken out, the norm clipped.
// Plain stochastic gradient descent, or Adam (Kingma and Ba 2015) with whatever it needs in device memory,
// so that a captured step uses the rate and the step number of its replay and not those of its capture. Adam here is
// what PyTorch calls capturable: step and rate are tensors and the bias correction is computed on the device.
//
// Everything is elementwise over flat fp32 buffers (ParameterBuffer). With bf16 parameters the update moves fp32 masters,
// from which the parameters are rounded afterwards, as Megatron-LM's Float16OptimizerWithFloat16Params.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "fixtures/fault.h"
#include "fixtures/named_tensor.h"
#include "workloads/gradient_clip.h"
#include "workloads/loss_scale.h"
#include "workloads/model_config.h"
#include "workloads/parameters.h"

namespace graphproof::workloads {

/// Megatron-LM's defaults of --adam-beta1, --adam-beta2 and --adam-eps.
struct AdamConstants {
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;
};
inline constexpr AdamConstants kAdam;

/// Decoupled (Loshchilov and Hutter 2019), for matrices and tables; biases and norms keep their size. Megatron-LM's
/// default of --weight-decay, and its rule of what decays.
inline constexpr double kWeightDecay = 0.01;
/// `name`: "param:NAME".
bool decays(const fixtures::NamedTensor& parameter);

class Optimizer {
 public:
  /// State is zero, masters equal their parameters. `parameters` and `gradients` outlive it.
  Optimizer(const ModelConfig& config, const Layout& layout, const Parameters& parameters,
            const GradientBuffer& gradients, fixtures::Fault fault);

  /// Enqueues one update on the current stream. Capturable: no host value but constants takes part. First the gradients
  /// are unscaled (fp16) and clipped, in place. Then, unless the loss scale found something infinite:
  ///   sgd:  d = g
  ///   adam: m = b1 m + (1 - b1) g;  v = b2 v + (1 - b2) g^2;  step += 1;
  ///         d = m / (1 - b1^step) / (sqrt(v) / sqrt(1 - b2^step) + epsilon)
  ///   p -= rate * weight_decay * p  where p decays;  p -= rate * d
  void step();

  /// What the loss is multiplied by, [] fp32; undefined where it is not.
  at::Tensor loss_scale() const { return scale_ ? scale_->scale() : at::Tensor(); }
  /// [] bool: the last step was skipped; undefined where none ever is.
  at::Tensor skipped() const { return scale_ ? scale_->found() : at::Tensor(); }
  /// GradientClip::norm(); undefined without clipping.
  at::Tensor gradient_norm() const { return clip_ ? clip_->norm() : at::Tensor(); }

  const at::Tensor& learning_rate() const { return rate_; }  // [] fp32 in, static
  /// Enqueues learning_rate() = `rate`. Before a step, never inside a capture.
  void learning_rate(double rate);

  /// What a step moves, fp32, in order of the parameters: "param:NAME", or with bf16 parameters "state:master.NAME".
  const std::vector<fixtures::NamedTensor>& updated() const { return updated_; }
  /// What it keeps from step to step, static: masters of bf16 parameters "state:master.NAME"; of Adam "state:adam.m.NAME",
  /// "state:adam.v.NAME" fp32, shapes of the parameters, and "state:adam.step" [] fp64, steps taken; LossScale::state();
  /// "state:clip.norm" [1] fp32 with clipping.
  const std::vector<fixtures::NamedTensor>& state() const { return state_; }

 private:
  at::Tensor current_rate() const;
  void move_by_adam();
  void decay();
  void round_parameters();
  void subtract(const at::Tensor& rate, const ParameterBuffer& direction);

  const OptimizerKind kind_;
  const Parameters& parameters_;
  const GradientBuffer& gradients_;
  const fixtures::Fault fault_;
  const bool decay_;
  std::optional<LossScale> scale_;
  std::optional<GradientClip> clip_;
  at::Tensor rate_, step_;  // [] fp32, [] fp64
  std::optional<ParameterBuffer> masters_, first_, second_, direction_;
  std::vector<fixtures::NamedTensor> updated_, state_;
  double host_rate_ = 0;        // M23 only
  std::int64_t host_step_ = 0;  // M24 only
};

}  // namespace graphproof::workloads
