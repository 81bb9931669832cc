#include "workloads/layers/delayed_gradients.h"

#include <stdexcept>
#include <string>
#include <utility>

namespace graphproof::workloads {
namespace {

struct DelayedProduct : torch::autograd::Function<DelayedProduct> {
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& x,
                            const at::Tensor& weight, const at::Tensor& main_gradient,
                            std::int64_t delayed) {
    context->save_for_backward({x, weight});
    // Not with the others: it may be added to between forward and backward.
    context->saved_data["main_gradient"] = main_gradient;
    context->saved_data["delayed"] = delayed;
    return at::matmul(x, weight.transpose(-1, -2));
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 const torch::autograd::variable_list& gradients) {
    const at::NoGradGuard no_grad;
    const auto saved = context->get_saved_variables();
    const at::Tensor &x = saved[0], &weight = saved[1], &dy = gradients[0];
    reinterpret_cast<DelayedGradients*>(context->saved_data["delayed"].toInt())
        ->owe(x, dy, context->saved_data["main_gradient"].toTensor());
    return {at::matmul(dy, weight), at::Tensor(), at::Tensor(), at::Tensor()};
  }
};

}  // namespace

void DelayedGradients::owe(const at::Tensor& x, const at::Tensor& dy,
                           const at::Tensor& main_gradient) {
  debts_.push_back({x.detach(), dy.detach(), main_gradient});
}

void DelayedGradients::add() {
  const at::NoGradGuard no_grad;
  if (debts_.empty())
    throw std::logic_error(
        "delayed weight gradients: got none that are owed; want those of the backward before; why: "
        "they "
        "would be missing or counted twice; next: call it once behind each backward of the part");
  for (Debt& debt : std::exchange(debts_, {}))
    debt.main_gradient.add_(at::matmul(debt.dy.transpose(-1, -2), debt.x));
}

void DelayedGradients::require_none_owed() const {
  if (debts_.empty()) return;
  throw std::logic_error("delayed weight gradients: got " + std::to_string(debts_.size()) +
                         " still owed at the end of the step; want none; "
                         "why: a graph that ends here lacks them, and what they are made of is "
                         "memory of its pool; next: call add() "
                         "behind each backward of the part");
}

at::Tensor delayed_product(const at::Tensor& x, const at::Tensor& weight,
                           const at::Tensor& main_gradient, DelayedGradients& delayed) {
  return DelayedProduct::apply(x, weight.detach(), main_gradient,
                               reinterpret_cast<std::int64_t>(&delayed));
}

}  // namespace graphproof::workloads
