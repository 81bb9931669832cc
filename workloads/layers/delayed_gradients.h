// Weight gradients of linear layers that backward leaves for later, as Megatron-LM's
// --delay-wgrad-compute: backward computes the gradients of the inputs, which other ranks wait for,
// and these products fill a gap afterwards.
//
// Autograd never sees such a weight: no accumulator adds its gradient and none runs its hooks.
#pragma once

#include <vector>

#include "fixtures/tensors/torch.h"

namespace graphproof::workloads {

/// What the linear layers of one part of a layer owe, in the order of their backwards. Keeps the
/// operands alive until then. Not thread-safe: backward has ended when add() is called.
class DelayedGradients {
 public:
  DelayedGradients() = default;
  DelayedGradients(const DelayedGradients&) = delete;  // nodes of autograd refer to it
  DelayedGradients& operator=(const DelayedGradients&) = delete;

  /// x [..., N, I], dy [..., N, O], main_gradient [..., O, I] fp32, a view of what the weight's
  /// .grad is.
  void owe(const at::Tensor& x, const at::Tensor& dy, const at::Tensor& main_gradient);
  bool owed() const { return !debts_.empty(); }
  /// Enqueues main_gradient += dy^T x for all that is owed. Throws std::logic_error where nothing
  /// is owed: no backward went before, or it was asked for twice.
  void add();
  /// Throws std::logic_error where something is owed: a graph that ended here would lack it, and
  /// its operands lie in the graph's pool.
  void require_none_owed() const;
  /// Forgets what a step that an error ended left.
  void forget() { debts_.clear(); }

 private:
  struct Debt {
    at::Tensor x, dy, main_gradient;
  };
  std::vector<Debt> debts_;
};

/// x [..., N, I] times weight^T, weight [..., O, I] with as many leading dimensions as x. Returns
/// [..., N, O]. Differentiable in x; backward leaves the rest with `delayed`, which outlives it.
at::Tensor delayed_product(const at::Tensor& x, const at::Tensor& weight,
                           const at::Tensor& main_gradient, DelayedGradients& delayed);

}  // namespace graphproof::workloads
