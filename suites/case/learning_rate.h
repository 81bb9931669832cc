// The learning rate schedule of all arms, and the effective learning rate: the rate that explains
// how a parameter moved. It reveals a graph that captured the rate as a constant, reads another
// buffer, or captured the step number of Adam's bias correction, whatever the engine reports.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>

#include "workloads/config/model_config.h"

namespace graphproof::suites {

/// Linear decay from `start` by `decay` * `start` per step, down to about `least`. The rate differs
/// in any two consecutive steps, so that a constant rate is noticed.
struct LearningRateSchedule {
  double start, decay, least;
  double at(std::int64_t step) const;
};
/// The schedule of an optimizer: sgd starts at 0.1 and adam at 0.001, because Adam moves each
/// element by about the rate. Both decay by a twentieth per step, down to a tenth.
const LearningRateSchedule& learning_rate_schedule(workloads::OptimizerKind optimizer);

/// The direction of an update p -= rate * direction.
struct UpdateDirection {
  at::Tensor values;  // [any], shape of the parameter
  /// The largest relative error of an element by fp32 arithmetic, in half ulps.
  double half_ulps = 0;
  /// How often the update rounds the parameter itself, each time by half an ulp at most.
  double roundings = 1;
};
/// The direction of gradient descent, which is the gradient.
UpdateDirection sgd_direction(const at::Tensor& gradient);
/// The direction of Adam's step number `steps`, in fp64, from the moments after that step:
///   m, v  [any] fp32 in  shape of the parameter
UpdateDirection adam_direction(const at::Tensor& m, const at::Tensor& v, std::int64_t steps);

/// The direction `of` combined with decoupled weight decay, p -= rate * decay * p, which precedes
/// the update. `before` is the parameter before both.
UpdateDirection with_decay(const UpdateDirection& of, const at::Tensor& before, double decay);

/// `rate` is the least squares estimate over all elements from the movement of a parameter. `bound`
/// is the largest error of that estimate by fp32 rounding of the update. Both are NaN if the
/// direction is zero.
struct EffectiveRate {
  double rate = 0, bound = 0;
};

/// The effective rate of one update, whose rate should have been `host_rate`. Computed in fp64 on
/// the tensors' device. Waits for the device.
///   before, after  [any] fp32 in  one parameter around an update p -= rate * direction
EffectiveRate effective_learning_rate(const at::Tensor& before, const at::Tensor& after,
                                      const UpdateDirection& direction, double host_rate);

}  // namespace graphproof::suites
