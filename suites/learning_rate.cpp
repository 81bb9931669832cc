#include "suites/learning_rate.h"

#include <algorithm>
#include <limits>

namespace graphproof::suites {

double scheduled_learning_rate(std::int64_t step) {
  constexpr double kStart = 0.1, kDecay = 0.05, kLeast = 0.01;
  const double rate = kStart * (1.0 - kDecay * static_cast<double>(step));
  // Below the floor the sign alternates the rate a little: no two consecutive steps share one.
  return rate >= kLeast ? rate : kLeast * (step % 2 == 0 ? 1.0 : 0.9);
}

FeltRate felt_learning_rate(const at::Tensor& before, const at::Tensor& after, const at::Tensor& gradient,
                            double host_rate) {
  const at::NoGradGuard no_grad;
  const at::Tensor g = gradient.detach().to(at::kDouble);
  const at::Tensor end = after.detach().to(at::kDouble);
  const at::Tensor moved = before.detach().to(at::kDouble) - end;
  const at::Tensor sums = at::stack({(moved * g).sum(), (g * g).sum(), (g * end).abs().sum()}).cpu();
  const double* sum = sums.const_data_ptr<double>();
  if (!(sum[1] > 0)) {
    constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();
    return {kUnknown, kUnknown};
  }
  // p' = p - r g rounds the rate once, the product once and the difference once, each by at most half an ulp of its
  // result. The least squares estimate weights element i's error by |g_i| / sum(g^2).
  constexpr double kHalfUlp = 5.9604644775390625e-8;  // 2^-24
  return {.rate = sum[0] / sum[1], .bound = kHalfUlp * (sum[2] / sum[1] + 2 * std::abs(host_rate))};
}

}  // namespace graphproof::suites
