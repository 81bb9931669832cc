#include "workloads/layers/fused_linear.h"

#include "workloads/forward/autocast.h"

namespace graphproof::workloads {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

struct FusedLinear : torch::autograd::Function<FusedLinear> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& weight,
                            const at::Tensor& main_gradient) {
    context->save_for_backward({x, weight});
    // Not a saved variable, because it may be modified between forward and backward.
    context->saved_data["main_gradient"] = main_gradient;
    return at::mm(x, weight.t());
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const at::NoGradGuard no_grad;
    const variable_list saved = context->get_saved_variables();
    const at::Tensor &x = saved[0], &weight = saved[1], &dy = gradients[0];
    at::Tensor main_gradient = context->saved_data["main_gradient"].toTensor();
    // One kernel if the types are equal. 16-bit products are rounded before they are added.
    if (dy.scalar_type() == main_gradient.scalar_type())
      main_gradient.addmm_(dy.t(), x);
    else
      main_gradient.add_(at::mm(dy.t(), x));
    return {at::mm(dy, weight), at::Tensor(), at::Tensor()};
  }
};

}  // namespace

at::Tensor linear_product(const at::Tensor& x, const at::Tensor& weight,
                          const at::Tensor& main_gradient, bool fused, DelayedGradients* delayed,
                          ActivationOffload* offload) {
  const at::Tensor operand = autocast_operand(x), factor = autocast_operand(weight);
  if (offload) return offloaded_product(operand, factor, *offload);
  if (delayed) return delayed_product(operand, factor, main_gradient, *delayed);
  return fused ? FusedLinear::apply(operand, factor, main_gradient) : at::mm(operand, factor.t());
}

}  // namespace graphproof::workloads
