// The optimizer, with what stands between reduced gradients and their use: the loss scale is taken
// out, the norm clipped. Plain stochastic gradient descent, or Adam (Kingma and Ba 2015) with
// whatever it needs in device memory, so that a captured step uses the rate and the step number of
// its replay and not those of its capture. Adam here is what PyTorch calls capturable: step and
// rate are tensors and the bias correction is computed on the device.
//
// Everything is elementwise over flat fp32 buffers (ParameterBuffer). With bf16 parameters the
// update moves fp32 masters, from which the parameters are rounded afterwards, as Megatron-LM's
// Float16OptimizerWithFloat16Params. With shards (ParameterShards) it moves what this rank owns and
// keeps state for that alone; every element is moved as without.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "fixtures/tensors/named_tensor.h"
#include "workloads/config/model_config.h"
#include "workloads/faults/hooks/fault_hooks.h"
#include "workloads/parameters/parameter_shards.h"
#include "workloads/parameters/parameters.h"
#include "workloads/training/gradient_clip.h"
#include "workloads/training/loss_scale.h"

namespace graphproof::workloads {

/// Megatron-LM's defaults of --adam-beta1, --adam-beta2 and --adam-eps.
struct AdamConstants {
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;
};
inline constexpr AdamConstants kAdam;

/// Decoupled (Loshchilov and Hutter 2019), for matrices and tables; biases and norms keep their
/// size. Megatron-LM's default of --weight-decay, and its rule of what decays.
inline constexpr double kWeightDecay = 0.01;
/// `name`: "param:NAME".
bool decays(const fixtures::NamedTensor& parameter);

/// One tensor that a step moves, fp32, and what it is moved by. All are static and of one shape:
/// the parameter's, or [elements] where this rank owns a part of it.
struct Updated {
  fixtures::NamedTensor moved;  // "param:NAME", or with parameters of 16 bits "state:master.NAME"
  at::Tensor gradient;
  at::Tensor m, v;  // of Adam
  bool decays;
  bool expert;  // its gradient is zero in a step that brings the expert no token
};

class Optimizer {
 public:
  /// State is zero, masters equal their parameters. `parameters`, `gradients`, `faults` and
  /// `shards` outlive it; `shards` is null where this rank updates all that it holds.
  Optimizer(const ModelConfig& config, const Layout& layout, const Parameters& parameters,
            const GradientBuffer& gradients, faults::FaultHooks& faults,
            const ParameterShards* shards = nullptr);

  /// Enqueues one update on the current stream. Capturable: no host value but constants takes part.
  /// First the gradients are unscaled (fp16) and clipped, in place. Then, unless the loss scale
  /// found something infinite:
  ///   sgd:  d = g
  ///   adam: m = b1 m + (1 - b1) g;  v = b2 v + (1 - b2) g^2;  step += 1;
  ///         d = m / (1 - b1^step) / (sqrt(v) / sqrt(1 - b2^step) + epsilon)
  ///   p -= rate * weight_decay * p  where p decays;  p -= rate * d
  /// With shards the ranks gather their parameters at the end, unless overlap_param_gather leaves
  /// that to the next step.
  void step();

  /// What the loss is multiplied by, [] fp32; undefined where it is not.
  at::Tensor loss_scale() const {
    return scale_ ? used(faults::Scalar::loss_scale, scale_->scale()) : at::Tensor();
  }
  /// [] bool: the last step was skipped; undefined where none ever is.
  at::Tensor skipped() const { return scale_ ? scale_->found() : at::Tensor(); }
  /// GradientClip::norm(); undefined without clipping.
  at::Tensor gradient_norm() const { return clip_ ? clip_->norm() : at::Tensor(); }

  const at::Tensor& learning_rate() const { return rate_; }  // [] fp32 in, static
  /// Enqueues learning_rate() = `rate`. Before a step, never inside a capture.
  void learning_rate(double rate);

  /// In order of the parameters; with shards only those of which this rank owns something.
  const std::vector<Updated>& updated() const { return updated_; }
  /// What it keeps from step to step, static: masters of bf16 parameters "state:master.NAME"; of
  /// Adam "state:adam.m.NAME", "state:adam.v.NAME" fp32, shapes of the parameters, and
  /// "state:adam.step" [] fp64, steps taken; LossScale::state(); "state:clip.norm" [1] fp32 with
  /// clipping. With shards what this rank owns of each parameter, [elements].
  const std::vector<fixtures::NamedTensor>& state() const { return state_; }

 private:
  /// What is kept for each element that this rank moves: flat [elements] fp32, and its views by
  /// parameter.
  struct State {
    at::Tensor flat;
    std::vector<fixtures::NamedTensor> views;
  };
  State make_state(const std::string& prefix) const;
  at::Tensor own(const at::Tensor& flat) const { return shards_ ? shards_->own(flat) : flat; }
  void begin_masters();
  void describe();
  /// What a kernel reads in place of `value`: itself.
  at::Tensor used(faults::Scalar which, const at::Tensor& value) const {
    return faults_.scalar(which, value);
  }
  at::Tensor current_rate() const;
  void move_by_gradient();
  void move_by_adam();
  void decay();
  void round_parameters();
  void gather_parameters();

  const OptimizerKind kind_;
  const Parameters& parameters_;
  const GradientBuffer& gradients_;
  faults::FaultHooks& faults_;
  const ParameterShards* const shards_;
  const bool decay_, gather_;
  std::optional<LossScale> scale_;
  std::optional<GradientClip> clip_;
  at::Tensor rate_, step_;  // [] fp32, [] fp64
  at::Tensor
      decayed_;  // [elements that this rank owns] fp32: 1 where they decay; with shards and decay
  std::optional<State> masters_, first_, second_, direction_;
  std::vector<Updated> updated_;
  std::vector<fixtures::NamedTensor> state_;
};

}  // namespace graphproof::workloads
