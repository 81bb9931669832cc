// The learning rate schedule of every arm, and the probe that asks what rate a parameter felt: a
// graph that froze the rate at capture, reads another buffer, or froze the step number of Adam's
// bias correction, is seen here whatever the engine says.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>

#include "workloads/config/model_config.h"

namespace graphproof::suites {

/// Linear decay from `start` by `decay` of it a step, never below `least`: another rate in each
/// step, so that a frozen one shows.
struct LearningRateSchedule {
  double start, decay, least;
  double at(std::int64_t step) const;
};
/// sgd from 0.1, adam from 0.001, as is usual: Adam moves each element by about the rate. Both lose
/// a twentieth a step, down to a tenth.
const LearningRateSchedule& learning_rate_schedule(workloads::OptimizerKind optimizer);

/// What an update p -= rate * direction took as its direction. `half_ulps`: how far fp32 arithmetic
/// may have moved an element of it, relative to its size.
struct UpdateDirection {
  at::Tensor values;  // [any], shape of the parameter
  double half_ulps = 0;
  double roundings = 1;  // of the parameter itself, each by half an ulp
};
/// Of gradient descent: the gradient as it is.
UpdateDirection sgd_direction(const at::Tensor& gradient);
/// Of Adam after its step number `steps`, in fp64 from its moments after that step:
///   m, v  [any] fp32 in  shape of the parameter
UpdateDirection adam_direction(const at::Tensor& m, const at::Tensor& v, std::int64_t steps);

/// `of` with decoupled weight decay on a parameter that was `before`: p -= rate * decay * p goes
/// before the update.
UpdateDirection with_decay(const UpdateDirection& of, const at::Tensor& before, double decay);

/// `rate` explains best (least squares over all elements) how a parameter moved; `bound` is the
/// largest distance from the true rate that fp32 rounding of the update can cause. Both are NaN
/// where every direction is zero.
struct FeltRate {
  double rate = 0, bound = 0;
};

/// Computed on the tensors' device in fp64, read on the host: waits for the device.
///   before, after  [any] fp32 in  one parameter around an update p -= rate * direction
FeltRate felt_learning_rate(const at::Tensor& before, const at::Tensor& after,
                            const UpdateDirection& direction, double host_rate);

}  // namespace graphproof::suites
