// Plain stochastic gradient descent whose learning rate lies in device memory, so that a captured step reads the rate
// of its replay and not that of its capture.
#pragma once

#include "fixtures/torch.h"

namespace graphproof::workloads {

/// parameter, gradient [any] fp32; rate [] fp32 on the device. parameter -= rate * gradient, in place, no autograd.
inline void sgd_update(const at::Tensor& parameter, const at::Tensor& gradient, const at::Tensor& rate) {
  const at::NoGradGuard no_grad;
  at::Tensor target = parameter;
  target.addcmul_(gradient, rate, -1);
}

}  // namespace graphproof::workloads
