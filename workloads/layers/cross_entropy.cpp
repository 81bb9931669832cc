#include "workloads/layers/cross_entropy.h"

#include <utility>
#include <vector>

#include "fixtures/comm/collectives.h"
#include "fixtures/tensors/torch.h"

namespace graphproof::workloads {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

at::Tensor sum_over_ranks(const at::Tensor& x, const Layout& layout) {
  return layout.tp == 1 ? x : comm::all_reduce_(x, layout.tp_group);
}

// x [N]. fixtures/comm reduces sums only, and one number for each token is small enough to gather.
at::Tensor largest_over_ranks(const at::Tensor& x, const Layout& layout) {
  return layout.tp == 1 ? x : at::amax(comm::all_gather(x.unsqueeze(0), layout.tp_group), {0});
}

// One autograd node, because the collectives inside need no gradients of their own: the gradient is
// (softmax - one_hot) / N. `weights` has one tensor or none, because PyTorch accepts no undefined
// tensor as an argument.
struct VocabParallelCrossEntropy : torch::autograd::Function<VocabParallelCrossEntropy> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& logits,
                            const at::Tensor& labels, const at::Tensor& columns,
                            const Layout& layout, const std::vector<at::Tensor>& weights) {
    const at::Tensor largest = largest_over_ranks(at::amax(logits, {1}), layout);  // [N]
    const at::Tensor shifted = logits - largest.unsqueeze(1);
    const at::Tensor one_hot =
        labels.unsqueeze(1).eq(columns);  // [N, V/T] bool: all false if another rank owns the label
    // [N]. Exact, because all terms but one are zero.
    const at::Tensor target = sum_over_ranks((shifted * one_hot).sum({1}), layout);
    const at::Tensor exponential = shifted.exp();
    const at::Tensor total = sum_over_ranks(exponential.sum({1}), layout);  // [N]
    variable_list kept{exponential / total.unsqueeze(1), one_hot};
    kept.insert(kept.end(), weights.begin(), weights.end());
    context->save_for_backward(std::move(kept));
    const at::Tensor losses = total.log() - target;
    return weights.empty() ? losses.mean() : (losses * weights[0]).sum();
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto saved = context->get_saved_variables();
    const at::Tensor &softmax = saved[0], &one_hot = saved[1];
    const double tokens = static_cast<double>(softmax.size(0));
    const at::Tensor each =
        saved.size() > 2 ? (gradients[0] * saved[2]).unsqueeze(1) : gradients[0] / tokens;
    return {(softmax - one_hot.to(softmax.scalar_type())) * each, {}, {}, {}, {}};
  }
};

}  // namespace

at::Tensor vocab_parallel_cross_entropy(const at::Tensor& logits, const at::Tensor& labels,
                                        const at::Tensor& columns, const Layout& layout,
                                        const at::Tensor& weights) {
  return VocabParallelCrossEntropy::apply(
      logits, labels, columns, layout,
      weights.defined() ? std::vector<at::Tensor>{weights} : std::vector<at::Tensor>());
}

}  // namespace graphproof::workloads
