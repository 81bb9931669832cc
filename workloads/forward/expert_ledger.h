// Where the tokens of this stage's expert layers went, counted in device memory where they are
// routed: an assignment (a token and one of its experts) is either carried to its expert or dropped
// for lack of room. A dispatch that loses tokens without saying so breaks the sum.
#pragma once

#include <vector>

#include "fixtures/tensors/named_tensor.h"
#include "fixtures/tensors/torch.h"
#include "workloads/config/model_config.h"

namespace graphproof::workloads {

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

  /// Enqueues zeros. At the start of a step.
  void begin_step() const {
    if (!on_) return;
    for (at::Tensor counter : {assigned_, carried_, dropped_, overflowed_}) counter.zero_();
  }
  /// Enqueues what the router of `layer`, counted in the whole model, decided: assigned [N, E]
  /// bool, before capacity; dropped [N, E] bool, those that it has no room for.
  void routed(std::int64_t layer, const at::Tensor& assigned, const at::Tensor& dropped) const {
    const std::int64_t place = layout_.expert_place(config_, layer);
    assigned_.select(0, place).add_(assigned.sum({0}));
    const at::Tensor count = dropped.sum();
    dropped_.select(0, place).add_(count);
    overflowed_.select(0, place).add_(count.gt(0));
  }
  /// Enqueues what the dispatch of `layer` takes along: carried [N, E] bool.
  void dispatched(std::int64_t layer, const at::Tensor& carried) const {
    carried_.select(0, layout_.expert_place(config_, layer)).add_(carried.sum({0}));
  }

  /// Of this rank's tokens and its stage's L expert layers in the last step, int64 out, static:
  /// "experts:assigned" and "experts:carried" [L, E], "experts:dropped" [L], "experts:overflowed"
  /// [L], the microbatches in which something was dropped. Empty for a dense model.
  std::vector<fixtures::NamedTensor> probes() const {
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
