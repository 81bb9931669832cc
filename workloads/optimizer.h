// The optimizer: plain stochastic gradient descent, or Adam (Kingma and Ba 2015) with whatever it needs in device memory,
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
#include "workloads/model_config.h"
#include "workloads/parameters.h"

namespace graphproof::workloads {

/// Megatron-LM's defaults of --adam-beta1, --adam-beta2 and --adam-eps; no weight decay.
struct AdamConstants {
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;
};
inline constexpr AdamConstants kAdam;

class Optimizer {
 public:
  /// State is zero, masters equal their parameters. `parameters` and `gradients` outlive it.
  Optimizer(OptimizerKind kind, const Parameters& parameters, const GradientBuffer& gradients, fixtures::Fault fault);

  /// Enqueues one update on the current stream. Capturable: no host value but constants takes part.
  ///   sgd:  p -= rate * g
  ///   adam: m = b1 m + (1 - b1) g;  v = b2 v + (1 - b2) g^2;  step += 1;
  ///         p -= rate / (1 - b1^step) * m / (sqrt(v) / sqrt(1 - b2^step) + epsilon)
  void step();

  const at::Tensor& learning_rate() const { return rate_; }  // [] fp32 in, static
  /// Enqueues learning_rate() = `rate`. Before a step, never inside a capture.
  void learning_rate(double rate);

  /// What a step moves, fp32, in order of the parameters: "param:NAME", or with bf16 parameters "state:master.NAME".
  const std::vector<fixtures::NamedTensor>& updated() const { return updated_; }
  /// What it keeps from step to step, static: masters of bf16 parameters "state:master.NAME"; of Adam "state:adam.m.NAME",
  /// "state:adam.v.NAME" fp32, shapes of the parameters, and "state:adam.step" [] fp64, steps taken.
  const std::vector<fixtures::NamedTensor>& state() const { return state_; }

 private:
  at::Tensor current_rate() const;
  void subtract(const at::Tensor& rate, const ParameterBuffer& direction);

  const OptimizerKind kind_;
  const Parameters& parameters_;
  const GradientBuffer& gradients_;
  const fixtures::Fault fault_;
  at::Tensor rate_, step_;  // [] fp32, [] fp64
  std::optional<ParameterBuffer> masters_, first_, second_, direction_;
  std::vector<fixtures::NamedTensor> updated_, state_;
  double host_rate_ = 0;        // M23 only
  std::int64_t host_step_ = 0;  // M24 only
};

}  // namespace graphproof::workloads
