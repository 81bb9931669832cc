// The forward and backward of one expert layer for one microbatch, in pieces, so that the exchange
// of its tokens overlaps the computation of another microbatch (Megatron-LM's
// --overlap-moe-expert-parallel-comm). Autograd's graph is cut around both exchanges, which run on
// their own stream (exchange_stream.h).
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "workloads/forward/autograd_section.h"
#include "workloads/forward/exchange_stream.h"
#include "workloads/model/layer.h"

namespace graphproof::workloads {

/// The pieces must be called in the order of their declaration: first those of the forward, later
/// those of the backward. Pieces of other passes run in between (layer_schedule.h). dispatch() and
/// combine() only begin an exchange; the next piece waits for it. Tensors are outside tensor
/// parallel regions, [N/P, H].
class LayerPass {
 public:
  /// `layer`, `exchanges` and what `pass` refers to outlive it. REQUIRES: the layer has experts
  /// whose tokens travel by all-to-all.
  LayerPass(const Layer& layer, const ForwardPass& pass, ExchangeStream& exchanges)
      : layer_(&layer), pass_(pass), exchanges_(&exchanges) {}

  const Layer& layer() const { return *layer_; }

  void before_experts(const at::Tensor& x) {
    tensors_ = before_.forward(
        {x}, [this](const auto& in) { return layer_->before_experts(in[0], pass_, routing_); });
  }
  void dispatch() { begin(tensors_[Layer::kPacked]); }
  void expert_forward() {
    const auto rows = experts_.forward({end()}, [this](const auto& in) {
      return std::vector{layer_->expert_forward(in[0], pass_, routing_)};
    });
    tensors_[Layer::kPacked] = rows[0];
  }
  void combine() { begin(tensors_[Layer::kPacked]); }
  /// Returns the output of the layer.
  at::Tensor after_experts() {
    tensors_[Layer::kPacked] = end();
    return after_.forward(std::exchange(tensors_, {}), [this](const auto& in) {
      return std::vector{layer_->after_experts(in, pass_, routing_)};
    })[0];
  }

  /// gradient: that of the layer's output.
  void after_experts_backward(const at::Tensor& gradient) {
    tensors_ = after_.backward({gradient});
  }
  void combine_backward() { begin(tensors_[Layer::kPacked]); }
  void expert_backward() { tensors_[Layer::kPacked] = experts_.backward({end()})[0]; }
  void expert_weight_gradients() { layer_->expert_weight_gradients(); }
  void dispatch_backward() { begin(tensors_[Layer::kPacked]); }
  /// Returns the gradient of the layer's input.
  at::Tensor before_experts_backward() {
    tensors_[Layer::kPacked] = end();
    return before_.backward(std::exchange(tensors_, {}))[0];
  }
  void before_experts_weight_gradients() { layer_->before_experts_weight_gradients(pass_); }

 private:
  void begin(const at::Tensor& rows) { exchange_ = exchanges_->begin(rows); }
  at::Tensor end() {
    at::Tensor received = exchanges_->end(std::move(*exchange_));
    exchange_.reset();
    return received;
  }

  const Layer* layer_;
  ForwardPass pass_;
  ExchangeStream* exchanges_;
  Layer::RoutingState routing_;
  AutogradSection before_, experts_, after_;
  /// The outputs of the last piece, which the next one takes; in a backward their gradients.
  std::vector<at::Tensor> tensors_;
  std::optional<ExchangeStream::Exchange> exchange_;
};

}  // namespace graphproof::workloads
