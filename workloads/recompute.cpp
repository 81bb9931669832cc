#include "workloads/recompute.h"

#include <utility>

namespace graphproof::workloads {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// How an autograd node keeps a function: it stores values that PyTorch counts references of.
struct KeptWork : torch::CustomClassHolder {
  explicit KeptWork(RecomputedWork kept) : run(std::move(kept)) {}
  RecomputedWork run;
};

struct Recompute : torch::autograd::Function<Recompute> {
  static at::Tensor forward(AutogradContext* context, const RecomputedWork& work, const at::Tensor& a,
                            const at::Tensor& b, const at::Tensor& c) {
    context->save_for_backward({a, b, c});
    context->saved_data["work"] = c10::IValue::make_capsule(c10::make_intrusive<KeptWork>(work));
    return work(a, b, c, /*again=*/false);
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    variable_list inputs;
    for (const at::Tensor& saved : context->get_saved_variables()) inputs.push_back(saved.detach().requires_grad_(true));
    const auto work = c10::static_intrusive_pointer_cast<KeptWork>(context->saved_data["work"].toCapsule());
    at::Tensor output;
    {
      const at::AutoGradMode record(true);
      output = work->run(inputs[0], inputs[1], inputs[2], /*again=*/true);
    }
    variable_list result{at::Tensor()};  // of `work`
    for (at::Tensor& gradient : torch::autograd::grad({output}, inputs, {gradients[0]}))
      result.push_back(std::move(gradient));
    return result;
  }
};

}  // namespace

at::Tensor recompute(const RecomputedWork& work, const at::Tensor& a, const at::Tensor& b, const at::Tensor& c) {
  return Recompute::apply(work, a, b, c);
}

}  // namespace graphproof::workloads
