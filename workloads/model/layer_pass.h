// The forward and backward of one layer for one microbatch, in pieces, so that the exchange of its
// experts' tokens overlaps the computation of another microbatch (Megatron-LM's
// --overlap-moe-expert-parallel-comm). Autograd's graph is cut around both exchanges, which run on
// their own stream (exchange_stream.h). A layer without experts runs whole in its first piece, and
// the others do nothing.
#pragma once

#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "workloads/forward/autograd_section.h"
#include "workloads/forward/exchange_stream.h"
#include "workloads/model/layer.h"

namespace graphproof::workloads {

/// What a layer of multi-token prediction has around it, run with its first piece and its last.
struct AroundLayer {
  /// x [N/P, H], the output of the layer before. Returns the layer's input [N/P, H], and a tensor
  /// that is passed on to `after`.
  std::function<std::pair<at::Tensor, at::Tensor>(const at::Tensor& x)> before;
  /// output [N/P, H] of the layer. What is returned stands for it.
  std::function<at::Tensor(const at::Tensor& output, const at::Tensor& kept)> after;
};

/// The pieces must be called in the order of their declaration: first those of the forward, later
/// those of the backward. Pieces of other passes run in between (layer_schedule.h). dispatch() and
/// combine() only begin an exchange; the next piece waits for it. Tensors are outside tensor
/// parallel regions, [N/P, H].
class LayerPass {
 public:
  /// `layer`, `exchanges` and what `pass` refers to outlive it. REQUIRES: tokens travel to experts
  /// by all-to-all; a layer with something around it has experts.
  LayerPass(const Layer& layer, const ForwardPass& pass, ExchangeStream& exchanges,
            AroundLayer around = {})
      : layer_(&layer), pass_(pass), exchanges_(&exchanges), around_(std::move(around)) {}

  const Layer& layer() const { return *layer_; }

  void before_experts(const at::Tensor& x) {
    resume();
    tensors_ = before_.forward({x}, [this](const auto& in) {
      if (!layer_->has_experts()) return std::vector{layer_->forward(in[0], pass_)};
      if (!around_.before) return layer_->before_experts(in[0], pass_, routing_);
      const auto [input, kept] = around_.before(in[0]);
      std::vector<at::Tensor> tensors = layer_->before_experts(input, pass_, routing_);
      tensors.push_back(kept);
      return tensors;
    });
  }
  void dispatch() { begin(); }
  void expert_forward() {
    if (!layer_->has_experts()) return;
    resume();
    end();
    tensors_[Layer::kPacked] = experts_.forward({tensors_[Layer::kPacked]}, [this](const auto& in) {
      return std::vector{layer_->expert_forward(in[0], pass_, routing_)};
    })[0];
  }
  void combine() { begin(); }
  /// Returns the output of the layer.
  at::Tensor after_experts() {
    if (!layer_->has_experts()) return std::exchange(tensors_, {})[0];
    resume();
    end();
    return after_.forward(std::exchange(tensors_, {}), [this](std::vector<at::Tensor> in) {
      if (!around_.after) return std::vector{layer_->after_experts(in, pass_, routing_)};
      const at::Tensor kept = in.back();
      in.pop_back();
      return std::vector{around_.after(layer_->after_experts(in, pass_, routing_), kept)};
    })[0];
  }

  /// gradient: that of the layer's output.
  void after_experts_backward(const at::Tensor& gradient) {
    resume();
    tensors_ = layer_->has_experts() ? after_.backward({gradient}) : std::vector{gradient};
  }
  void combine_backward() { begin(); }
  void expert_backward() {
    if (!layer_->has_experts()) return;
    resume();
    end();
    tensors_[Layer::kPacked] = experts_.backward({tensors_[Layer::kPacked]})[0];
  }
  void expert_weight_gradients() {
    if (layer_->has_experts()) layer_->expert_weight_gradients();
  }
  void dispatch_backward() { begin(); }
  /// Returns the gradient of the layer's input.
  at::Tensor before_experts_backward() {
    resume();
    end();
    return before_.backward(std::exchange(tensors_, {}))[0];
  }
  void before_experts_weight_gradients() {
    if (layer_->has_experts()) layer_->before_experts_weight_gradients(pass_);
  }

 private:
  /// Pieces of another microbatch have run since the last one. The masks and sums of a recomputed
  /// part are of this microbatch from now on.
  void resume() {
    if (!layer_->recomputes()) return;
    pass_.dropout.begin(pass_.microbatch);
    pass_.recomputes.begin(pass_.microbatch);
  }
  void begin() {
    if (layer_->has_experts()) exchange_ = exchanges_->begin(tensors_[Layer::kPacked]);
  }
  void end() {
    if (!layer_->has_experts()) return;
    tensors_[Layer::kPacked] = exchanges_->end(std::move(*exchange_));
    exchange_.reset();
  }

  const Layer* layer_;
  ForwardPass pass_;
  ExchangeStream* exchanges_;
  AroundLayer around_;
  Layer::RoutingState routing_;
  AutogradSection before_, experts_, after_;
  /// The outputs of the last piece, which the next one takes; in a backward their gradients.
  std::vector<at::Tensor> tensors_;
  std::optional<ExchangeStream::Exchange> exchange_;
};

}  // namespace graphproof::workloads
