// The optimizer, including the unscaling and clipping of the reduced gradients: stochastic gradient
// descent or Adam (Kingma and Ba 2015). Everything that an update reads is in device memory, so
// that a captured step uses the learning rate and step number of its replay and not those of its
// capture. This is what PyTorch calls a capturable Adam: step and rate are tensors, and the bias
// correction is computed on the device.
//
// All operations are elementwise over flat fp32 buffers (ParameterBuffer). With parameters of 16
// bits the update changes fp32 master copies, from which the parameters are rounded afterwards, as
// in Megatron-LM's Float16OptimizerWithFloat16Params. With shards (ParameterShards) a rank updates
// only the elements that it owns and keeps state only for them; the updated values are the same as
// without shards.
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

/// Decoupled weight decay (Loshchilov and Hutter 2019) for matrices and tables, not for biases and
/// norms. Megatron-LM's default of --weight-decay, and its rule of what decays.
inline constexpr double kWeightDecay = 0.01;
/// Whether a parameter, named "param:NAME", decays.
bool decays(const fixtures::NamedTensor& parameter);

/// One fp32 tensor that a step updates, and the tensors that the update reads. All are static and
/// of one shape: that of the parameter, or [elements] if this rank owns a part of it.
struct Updated {
  fixtures::NamedTensor moved;  // "param:NAME"; "state:master.NAME" with parameters of 16 bits
  at::Tensor gradient;
  at::Tensor m, v;  // with Adam
  bool decays;
  bool expert;  // belongs to an expert, so its gradient is zero if the expert gets no token
};

/// The optimizer of one rank. Used by the thread that runs the step.
class Optimizer {
 public:
  /// The state starts at zero, and master copies equal their parameters. `parameters`, `gradients`,
  /// `faults` and `shards` outlive it. `shards` is null if this rank updates everything that it
  /// holds.
  Optimizer(const ModelConfig& config, const Layout& layout, const Parameters& parameters,
            const GradientBuffer& gradients, faults::FaultHooks& faults,
            const ParameterShards* shards = nullptr);

  /// Enqueues one update on the current stream. May be captured: the only host values are
  /// constants. First the gradients are unscaled (fp16) and clipped, in place. Then, unless the
  /// loss scale found an infinite gradient:
  ///   sgd:  d = g
  ///   adam: m = b1 m + (1 - b1) g;  v = b2 v + (1 - b2) g^2;  step += 1;
  ///         d = m / (1 - b1^step) / (sqrt(v) / sqrt(1 - b2^step) + epsilon)
  ///   p -= rate * weight_decay * p  if p decays;  p -= rate * d
  /// With shards the ranks gather the parameters at the end, unless overlap_param_gather defers
  /// that to the next step.
  void step();

  /// The factor of the loss, [] fp32; undefined without loss scaling.
  at::Tensor loss_scale() const {
    return scale_ ? used(faults::Scalar::loss_scale, scale_->scale()) : at::Tensor();
  }
  /// [] bool: whether the last step was skipped; undefined without loss scaling.
  at::Tensor skipped() const { return scale_ ? scale_->found() : at::Tensor(); }
  /// GradientClip::norm(); undefined without clipping.
  at::Tensor gradient_norm() const { return clip_ ? clip_->norm() : at::Tensor(); }

  const at::Tensor& learning_rate() const { return rate_; }  // [] fp32 in, static
  /// Enqueues learning_rate() = `rate`. Called before a step, never inside a capture.
  void learning_rate(double rate);

  /// In the order of the parameters; with shards only those of which this rank owns a part.
  const std::vector<Updated>& updated() const { return updated_; }
  /// The tensors that it keeps between steps, static: the master copies "state:master.NAME"; with
  /// Adam "state:adam.m.NAME" and "state:adam.v.NAME" fp32 in the shapes of the parameters, and
  /// "state:adam.step" [] fp64, the steps taken; LossScale::state(); with clipping
  /// "state:clip.norm" [1] fp32. With shards, tensors by parameter hold the elements that this rank
  /// owns, [elements].
  const std::vector<fixtures::NamedTensor>& state() const { return state_; }

 private:
  /// A value for each element that this rank updates: flat [elements] fp32, and its views by
  /// parameter.
  struct State {
    at::Tensor flat;
    std::vector<fixtures::NamedTensor> views;
  };
  State make_state(const std::string& prefix) const;
  at::Tensor own(const at::Tensor& flat) const { return shards_ ? shards_->own(flat) : flat; }
  void begin_masters();
  void describe();
  /// The tensor that a kernel reads for `value`: `value` itself unless a fault is planted.
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
  /// [elements that this rank owns] fp32: 1 for those that decay; only with shards and decay.
  at::Tensor decayed_;
  std::optional<State> masters_, first_, second_, direction_;
  std::vector<Updated> updated_;
  std::vector<fixtures::NamedTensor> state_;
};

}  // namespace graphproof::workloads
