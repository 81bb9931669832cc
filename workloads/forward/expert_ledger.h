// Counts, in device memory, what became of the tokens of this stage's expert layers. An assignment
// (a token and one of its experts) is either carried to its expert or dropped because the expert is
// full. The counts are written where tokens are routed and where they are dispatched, so a dispatch
// that loses tokens breaks the sum.
#pragma once

#include <vector>

#include "fixtures/tensors/named_tensor.h"
#include "fixtures/tensors/torch.h"
#include "workloads/config/model_config.h"

namespace graphproof::workloads {

/// Its counters are static tensors. Methods enqueue on the current stream and may be captured.
class ExpertLedger {
 public:
  ExpertLedger(const ModelConfig& config, const Layout& layout, at::Device device)
      : on_(config.experts > 0), config_(config), layout_(layout) {
    if (!on_) return;
    const auto counts = at::TensorOptions().dtype(at::kLong).device(device);
    assigned_ = at::zeros({layout.expert_layers(config), config.experts}, counts);
    carried_ = at::zeros_like(assigned_);
    dropped_ = at::zeros({layout.expert_layers(config)}, counts);
    overflowed_ = at::zeros_like(dropped_);
  }

  /// Sets the counters to zero, at the start of a step.
  void begin_step() const {
    if (!on_) return;
    for (at::Tensor counter : {assigned_, carried_, dropped_, overflowed_}) counter.zero_();
  }
  /// Counts the decisions of the router of `layer` (index in the whole model): assigned [N, E] bool
  /// before the capacity is applied; dropped [N, E] bool, the assignments beyond the capacity.
  void routed(std::int64_t layer, const at::Tensor& assigned, const at::Tensor& dropped) const {
    const std::int64_t place = layout_.expert_place(config_, layer);
    assigned_.select(0, place).add_(assigned.sum({0}));
    const at::Tensor count = dropped.sum();
    dropped_.select(0, place).add_(count);
    overflowed_.select(0, place).add_(count.gt(0));
  }
  /// Counts the assignments that the dispatch of `layer` carries: carried [N, E] bool.
  void dispatched(std::int64_t layer, const at::Tensor& carried) const {
    carried_.select(0, layout_.expert_place(config_, layer)).add_(carried.sum({0}));
  }

  /// Of the flex dispatcher, whose receivers may lack room: adds to the assignments that `layer`
  /// carries, more [E] int64, which may be negative.
  void carries(std::int64_t layer, const at::Tensor& more) const {
    carried_.select(0, layout_.expert_place(config_, layer)).add_(more);
  }
  /// Counts the assignments of one dispatch that find no room at their receivers: lost [] int64.
  void lost(std::int64_t layer, const at::Tensor& lost) const {
    const std::int64_t place = layout_.expert_place(config_, layer);
    dropped_.select(0, place).add_(lost);
    overflowed_.select(0, place).add_(lost.gt(0));
  }

  /// The counts of the last step for this rank's tokens and the L expert layers of its stage,
  /// int64: "experts:assigned" and "experts:carried" [L, E], "experts:dropped" [L], and
  /// "experts:overflowed" [L], the number of microbatches in which something was dropped. Empty for
  /// a dense model.
  std::vector<fixtures::NamedTensor> tensors() const {
    if (!on_) return {};
    return {{"experts:assigned", assigned_},
            {"experts:carried", carried_},
            {"experts:dropped", dropped_},
            {"experts:overflowed", overflowed_}};
  }
  const at::Tensor& dropped() const { return dropped_; }
  const at::Tensor& assigned() const { return assigned_; }

 private:
  bool on_;
  ModelConfig config_;
  Layout layout_;
  at::Tensor assigned_, carried_, dropped_, overflowed_;
};

}  // namespace graphproof::workloads
