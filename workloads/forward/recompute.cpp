#include "workloads/forward/recompute.h"

#include <utility>

#include "workloads/forward/autocast.h"

namespace graphproof::workloads {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// Wraps the function for an autograd node, which can only store reference counted values.
struct KeptWork : torch::CustomClassHolder {
  KeptWork(RecomputedWork kept, AutocastState state) : run(std::move(kept)), autocast(state) {}
  RecomputedWork run;
  AutocastState autocast;  // of the first run
};

struct Recompute : torch::autograd::Function<Recompute> {
  // Lists must be at::TensorList: PyTorch 2.11 does not find the variables in a std::vector.
  static at::Tensor forward(AutogradContext* context, const RecomputedWork& work,
                            at::TensorList inputs, at::TensorList parameters) {
    variable_list saved = inputs.vec();
    saved.insert(saved.end(), parameters.begin(), parameters.end());
    context->save_for_backward(std::move(saved));
    context->saved_data["inputs"] = static_cast<std::int64_t>(inputs.size());
    context->saved_data["work"] = c10::IValue::make_capsule(
        c10::make_intrusive<KeptWork>(work, autocast_state(inputs.front().device().type())));
    return work(inputs.vec(), /*again=*/false);
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const auto count = static_cast<std::size_t>(context->saved_data["inputs"].toInt());
    variable_list inputs;
    for (std::size_t i = 0; i < count; ++i)
      inputs.push_back(saved[i].detach().requires_grad_(saved[i].requires_grad()));
    const auto work =
        c10::static_intrusive_pointer_cast<KeptWork>(context->saved_data["work"].toCapsule());
    at::Tensor output;
    {
      const at::AutoGradMode record(true);
      const AutocastRegion region(inputs.front().device().type(), work->autocast);
      output = work->run(inputs, /*again=*/true);
    }
    variable_list targets;
    for (std::size_t i = 0; i < saved.size(); ++i)
      if (saved[i].requires_grad()) targets.push_back(i < count ? inputs[i] : saved[i]);
    variable_list found =
        torch::autograd::grad({output}, targets, {gradients[0]}, /*retain_graph=*/std::nullopt,
                              /*create_graph=*/false, /*allow_unused=*/true);
    variable_list result{at::Tensor()};  // for the argument `work`
    std::size_t next = 0;
    for (const at::Tensor& tensor : saved)
      result.push_back(tensor.requires_grad() ? std::move(found[next++]) : at::Tensor());
    return result;
  }
};

}  // namespace

at::Tensor recompute(const RecomputedWork& work, const std::vector<at::Tensor>& inputs,
                     const std::vector<at::Tensor>& parameters) {
  return Recompute::apply(work, at::TensorList(inputs), at::TensorList(parameters));
}

}  // namespace graphproof::workloads
