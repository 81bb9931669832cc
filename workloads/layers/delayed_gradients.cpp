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
    // Not a saved variable, because it may be modified between forward and backward.
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
        ->defer(x, dy, context->saved_data["main_gradient"].toTensor());
    return {at::matmul(dy, weight), at::Tensor(), at::Tensor(), at::Tensor()};
  }
};

}  // namespace

void DelayedGradients::defer(const at::Tensor& x, const at::Tensor& dy,
                             const at::Tensor& main_gradient) {
  defer([x = x.detach(), dy = dy.detach()] { return at::matmul(dy.transpose(-1, -2), x); },
        main_gradient);
}

void DelayedGradients::defer(std::function<at::Tensor()> product, const at::Tensor& main_gradient) {
  deferred_.push_back({std::move(product), main_gradient});
}

void DelayedGradients::add() {
  const at::NoGradGuard no_grad;
  if (deferred_.empty())
    throw std::logic_error(
        "delayed weight gradients: got none pending; want those of the last backward; why: they "
        "would be missing or counted twice; next: call add() once after each backward of the part");
  for (Deferred& deferred : std::exchange(deferred_, {}))
    deferred.main_gradient.add_(deferred.product());
}

void DelayedGradients::require_none_pending() const {
  if (deferred_.empty()) return;
  throw std::logic_error("delayed weight gradients: got " + std::to_string(deferred_.size()) +
                         " still pending at the end of the step; want none; why: a graph that ends "
                         "here lacks them, and their operands are memory of its pool; next: call "
                         "add() after each backward of the part");
}

at::Tensor delayed_product(const at::Tensor& x, const at::Tensor& weight,
                           const at::Tensor& main_gradient, DelayedGradients& delayed) {
  return DelayedProduct::apply(x, weight.detach(), main_gradient,
                               reinterpret_cast<std::int64_t>(&delayed));
}

}  // namespace graphproof::workloads
