// The learning rate schedule of every arm, and the probe that asks what rate a parameter felt: a graph that froze the
// rate at capture, or reads another buffer, is seen here whatever the engine says.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>

namespace graphproof::suites {

/// 0.1 * (1 - 0.05 k), and never below a tenth of the start: another rate in each step, so that a frozen one shows.
double scheduled_learning_rate(std::int64_t step);

/// `rate` explains best (least squares over all elements) how a parameter moved; `bound` is the largest distance from
/// the true rate that fp32 rounding of the update can cause. Both are NaN where every gradient is zero.
struct FeltRate {
  double rate = 0, bound = 0;
};

/// Computed on the tensors' device in fp64, read on the host: waits for the device.
///   before, after  [any] fp32 in  one parameter around an update p -= rate * g
///   gradient       [any] fp32 in  what the update used, same shape
FeltRate felt_learning_rate(const at::Tensor& before, const at::Tensor& after, const at::Tensor& gradient,
                            double host_rate);

}  // namespace graphproof::suites
