// Work whose autograd graph is separate from that of the work before and after it.
#pragma once

#include <utility>
#include <vector>

#include "fixtures/tensors/torch.h"

namespace graphproof::workloads {

/// Runs one section forward and, when the gradients of its outputs are known, backward. One forward
/// and then its backward at a time.
class AutogradSection {
 public:
  using Tensors = std::vector<at::Tensor>;

  /// Calls work() with the `given` floating point tensors, detached from their history. Returns the
  /// outputs, also detached.
  template <class Work>
  Tensors forward(const Tensors& given, const Work& work) {
    inputs_.clear();
    for (const at::Tensor& tensor : given) inputs_.push_back(tensor.detach().requires_grad_(true));
    outputs_ = work(inputs_);
    Tensors detached;
    for (const at::Tensor& output : outputs_) detached.push_back(output.detach());
    return detached;
  }

  /// gradients: one for each output. Accumulates the gradients of the parameters and returns those
  /// of the inputs, undefined for an input on which no output depends. Releases the forward.
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
