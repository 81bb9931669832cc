// A stretch of work between two cuts of autograd's graph, whose backward is called apart from its
// neighbours'.
#pragma once

#include <utility>
#include <vector>

#include "fixtures/tensors/torch.h"

namespace graphproof::workloads {

class AutogradSection {
 public:
  using Tensors = std::vector<at::Tensor>;

  /// work(leaves), leaves the `given` floating point tensors without their history. Returns its
  /// outputs without theirs.
  template <class Work>
  Tensors forward(const Tensors& given, const Work& work) {
    inputs_.clear();
    for (const at::Tensor& tensor : given) inputs_.push_back(tensor.detach().requires_grad_(true));
    outputs_ = work(inputs_);
    Tensors detached;
    for (const at::Tensor& output : outputs_) detached.push_back(output.detach());
    return detached;
  }

  /// gradients: one for each output. Adds to the gradients of the parameters and returns those of
  /// the inputs, undefined where the outputs don't depend on one. Forgets the forward.
  Tensors backward(const Tensors& gradients) {
    torch::autograd::backward(std::exchange(outputs_, {}), gradients);
    Tensors found;
    for (const at::Tensor& input : std::exchange(inputs_, {})) found.push_back(input.grad());
    return found;
  }

 private:
  Tensors inputs_, outputs_;
};

}  // namespace graphproof::workloads
