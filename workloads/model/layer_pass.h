// One microbatch's way through one expert layer in pieces, so that the exchange of its tokens runs
// beside computation of another microbatch, as Megatron-LM's --overlap-moe-expert-parallel-comm:
// autograd's graph is cut around both exchanges, which run on a stream of their own
// (exchange_stream.h).
//
// The pieces of a forward are called in the order in which they stand here, those of a backward
// too, and between them those of other passes: layer_turns.h has the order. Tensors outside tensor
// parallel regions, [N/P, H].
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "workloads/forward/autograd_section.h"
#include "workloads/forward/exchange_stream.h"
#include "workloads/model/layer.h"

namespace graphproof::workloads {

class LayerPass {
 public:
  /// All outlive it. REQUIRES: a layer with experts whose tokens travel by all-to-all.
  LayerPass(const Layer& layer, const ForwardPass& pass, ExchangeStream& exchanges)
      : layer_(&layer), pass_(pass), exchanges_(&exchanges) {}

  const Layer& layer() const { return *layer_; }

  void attend(const at::Tensor& x) {
    left_ = attend_.forward({x},
                            [this](const auto& in) { return layer_->attend(in[0], pass_, kept_); });
  }
  void dispatch() { begin(left_[Layer::kDeparting]); }
  void work() {
    const auto rows = work_.forward(
        {end()}, [this](const auto& in) { return std::vector{layer_->work(in[0], pass_, kept_)}; });
    left_[Layer::kDeparting] = rows[0];
  }
  void combine() { begin(left_[Layer::kDeparting]); }
  at::Tensor finish() {
    left_[Layer::kDeparting] = end();
    return finish_.forward(std::exchange(left_, {}), [this](const auto& in) {
      return std::vector{layer_->finish(in, pass_, kept_)};
    })[0];
  }

  void finish_backward(const at::Tensor& gradient) { left_ = finish_.backward({gradient}); }
  void combine_backward() { begin(left_[Layer::kDeparting]); }
  void work_backward() { left_[Layer::kDeparting] = work_.backward({end()})[0]; }
  void work_weight_gradients() { layer_->work_weight_gradients(pass_); }
  void dispatch_backward() { begin(left_[Layer::kDeparting]); }
  /// The gradient of what attend() was given.
  at::Tensor attend_backward() {
    left_[Layer::kDeparting] = end();
    return attend_.backward(std::exchange(left_, {}))[0];
  }
  void attend_weight_gradients() { layer_->attend_weight_gradients(pass_); }

 private:
  void begin(const at::Tensor& rows) { under_way_ = exchanges_->begin(rows); }
  at::Tensor end() {
    at::Tensor arrived = exchanges_->end(std::move(*under_way_));
    under_way_.reset();
    return arrived;
  }

  const Layer* layer_;
  ForwardPass pass_;
  ExchangeStream* exchanges_;
  Layer::Kept kept_;
  AutogradSection attend_, work_, finish_;
  std::vector<at::Tensor> left_;  // by the piece before, for the next; one of them travels
  std::optional<ExchangeStream::Exchange> under_way_;
};

}  // namespace graphproof::workloads
