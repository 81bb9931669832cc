#include "suites/case/learning_rate.h"

#include <cmath>
#include <limits>

#include "workloads/training/optimizer.h"

namespace graphproof::suites {

double LearningRateSchedule::at(std::int64_t step) const {
  const double rate = start * (1.0 - decay * static_cast<double>(step));
  // At the floor the rate alternates, so that no two consecutive steps have the same one.
  return rate >= least ? rate : least * (step % 2 == 0 ? 1.0 : 0.9);
}

const LearningRateSchedule& learning_rate_schedule(workloads::OptimizerKind optimizer) {
  static constexpr LearningRateSchedule kSgd{.start = 0.1, .decay = 0.05, .least = 0.01};
  static constexpr LearningRateSchedule kAdam{.start = 0.001, .decay = 0.05, .least = 0.0001};
  return optimizer == workloads::OptimizerKind::adam ? kAdam : kSgd;
}

UpdateDirection sgd_direction(const at::Tensor& gradient) {
  return {.values = gradient.detach(), .half_ulps = 0};
}

UpdateDirection adam_direction(const at::Tensor& m, const at::Tensor& v, std::int64_t steps) {
  using workloads::kAdam;
  const auto count = static_cast<double>(steps);
  const double first = 1 - std::pow(kAdam.beta1, count), second = 1 - std::pow(kAdam.beta2, count);
  const at::Tensor denominator =
      v.detach().to(at::kDouble).sqrt() / std::sqrt(second) + kAdam.epsilon;
  // A root, two divisions, a sum, and the corrections and the rate rounded to fp32 are eight
  // roundings of half an ulp each. The bound is twice that, because a device's root or division may
  // be off by an ulp.
  return {.values = m.detach().to(at::kDouble) / denominator / first, .half_ulps = 16};
}

UpdateDirection with_decay(const UpdateDirection& of, const at::Tensor& before, double decay) {
  return {.values = of.values.to(at::kDouble) + decay * before.detach().to(at::kDouble),
          .half_ulps = of.half_ulps + 2,
          .roundings = of.roundings + 1};
}

EffectiveRate effective_learning_rate(const at::Tensor& before, const at::Tensor& after,
                                      const UpdateDirection& direction, double host_rate) {
  const at::NoGradGuard no_grad;
  const at::Tensor g = direction.values.to(at::kDouble);
  const at::Tensor end = after.detach().to(at::kDouble);
  const at::Tensor moved = before.detach().to(at::kDouble) - end;
  const at::Tensor sums =
      at::stack({(moved * g).sum(), (g * g).sum(), (g * end).abs().sum()}).cpu();
  const double* sum = sums.const_data_ptr<double>();
  if (!(sum[1] > 0)) {
    constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();
    return {kUnknown, kUnknown};
  }
  // p' = p - r g rounds the rate, the product and the difference once each, by at most half an ulp
  // of the result. The least squares estimate weights the error of element i by |g_i| / sum(g^2).
  constexpr double kHalfUlp = 5.9604644775390625e-8;  // 2^-24
  return {.rate = sum[0] / sum[1],
          .bound = kHalfUlp * (direction.roundings * sum[2] / sum[1] +
                               (2 + direction.half_ulps) * std::abs(host_rate))};
}

}  // namespace graphproof::suites
