// Weight gradients of linear layers that are computed after the backward, as with Megatron-LM's
// --delay-wgrad-compute. The backward computes the gradients of the inputs, for which other ranks
// wait; the products for the weights run later, in a gap.
//
// Autograd does not know such a weight: no accumulator adds its gradient or runs hooks for it.
#pragma once

#include <functional>
#include <vector>

#include "fixtures/tensors/torch.h"

namespace graphproof::workloads {

/// The pending weight gradients of the linear layers in one part of a layer, in the order of their
/// backwards. Keeps the operands alive until add(). Not thread-safe: the backward must have ended
/// when add() is called.
class DelayedGradients {
 public:
  DelayedGradients() = default;
  DelayedGradients(const DelayedGradients&) = delete;  // nodes of autograd refer to it
  DelayedGradients& operator=(const DelayedGradients&) = delete;

  /// Keeps the operands of main_gradient += dy^T x. x [..., N, I], dy [..., N, O]; main_gradient
  /// [..., O, I] fp32 is the weight's .grad or a view of it.
  void defer(const at::Tensor& x, const at::Tensor& dy, const at::Tensor& main_gradient);
  /// Keeps `product`, which returns the weight's gradient in the shape of `main_gradient`.
  void defer(std::function<at::Tensor()> product, const at::Tensor& main_gradient);
  bool pending() const { return !deferred_.empty(); }
  /// Enqueues the pending additions. Throws std::logic_error if none is pending: there was no
  /// backward before, or this is the second call after it.
  void add();
  /// Throws std::logic_error if gradients are pending: a graph that ends here would lack their
  /// products, whose operands lie in the pool of the graph.
  void require_none_pending() const;
  /// Discards what is pending, after an error ended the step.
  void discard() { deferred_.clear(); }

 private:
  struct Deferred {
    std::function<at::Tensor()> product;
    at::Tensor main_gradient;
  };
  std::vector<Deferred> deferred_;
};

/// `parameters` of linear layers and norms as a recomputed part declares them to autograd: without
/// the weights whose gradients are deferred, if they are. Autograd would take what the part returns
/// for these for an addition of nothing, and run the hooks that count additions.
inline std::vector<at::Tensor> known_to_autograd(std::vector<at::Tensor> parameters,
                                                 const DelayedGradients* delayed) {
  if (delayed)
    std::erase_if(parameters, [](const at::Tensor& parameter) { return parameter.dim() == 2; });
  return parameters;
}

/// Returns x times weight^T, [..., N, O]. x [..., N, I]; weight [..., O, I] has the same leading
/// dimensions. Differentiable in x; the backward defers the weight's gradient to `delayed`, which
/// must outlive it.
at::Tensor delayed_product(const at::Tensor& x, const at::Tensor& weight,
                           const at::Tensor& main_gradient, DelayedGradients& delayed);

}  // namespace graphproof::workloads
