// Linear layers that are split over the T tensor parallel ranks (Shoeybi et al. 2019, section 3). A
// column-parallel layer splits the outputs and needs no communication in the forward; a
// row-parallel layer splits the inputs and sums the partial products.
//
// N = B*S tokens, P parts of a sequence (tensor_parallel.h), I inputs, O outputs.
#pragma once

#include <cmath>
#include <string>

#include "fixtures/tensors/torch.h"
#include "workloads/forward/forward_pass.h"
#include "workloads/layers/fp8_product.h"
#include "workloads/layers/fp8_weights.h"
#include "workloads/layers/tensor_parallel.h"
#include "workloads/parameters/parameters.h"

namespace graphproof::workloads {

/// The distribution of a weight with I inputs: variance gain^2 / I, so that activations keep their
/// size. This is much larger than Megatron-LM's 0.02 for small models, where a layer would have
/// little effect and a defect in it would hide. (A uniform number in -1 .. 1 has variance 1/3.)
inline Distribution weight_distribution(std::int64_t inputs, double gain) {
  return {0.0, gain * std::sqrt(3.0 / static_cast<double>(inputs))};
}
/// Not zero, so that a bias that is lost changes the result.
inline constexpr Distribution kBiasDistribution{0.0, 0.1};

/// x [N/P, I] from outside the region; weight [O/T, I] of this rank's outputs. Returns [N, O/T].
inline at::Tensor column_parallel(const at::Tensor& x, const at::Tensor& weight,
                                  const Layout& layout) {
  return at::mm(enter_tensor_parallel(x, layout), autocast_operand(weight).t());
}

/// A linear layer whose outputs are split over the T ranks.
class ColumnParallelLinear {
 public:
  /// `fused`, `delayed`: see linear_product(). `delayed` outlives it.
  ColumnParallelLinear(Parameters& parameters, const Layout& layout, const std::string& name,
                       std::int64_t inputs, std::int64_t outputs, bool with_bias,
                       bool fused = false, DelayedGradients* delayed = nullptr)
      : layout_(layout), fused_(fused), delayed_(delayed) {
    const Shard rows{0, layout.tp_rank, layout.tp};
    weight_ = parameters.create(name + ".weight", {outputs, inputs}, rows,
                                weight_distribution(inputs, 1.0));
    if (with_bias) bias_ = parameters.create(name + ".bias", {outputs}, rows, kBiasDistribution);
  }

  /// x [N/P, I] from outside the region. Returns this rank's outputs, [N, O/T].
  at::Tensor forward(const at::Tensor& x, const ForwardPass& pass) const {
    const at::Tensor y =
        linear_product(enter_tensor_parallel(x, layout_), used_weight(weight_, pass),
                       weight_.grad(), fused_, delayed_, pass.offload);
    return bias_.defined() ? y + bias_ : y;
  }

 private:
  Layout layout_;
  bool fused_;
  DelayedGradients* delayed_;
  at::Tensor weight_, bias_;  // [O/T, I], [O/T]
};

/// A linear layer whose inputs are split over the T ranks.
class RowParallelLinear {
 public:
  /// `fused`, `delayed`: see linear_product(). `delayed` outlives it.
  RowParallelLinear(Parameters& parameters, const Layout& layout, const std::string& name,
                    std::int64_t inputs, std::int64_t outputs, bool with_bias, double gain,
                    bool fused = false, DelayedGradients* delayed = nullptr)
      : layout_(layout), fused_(fused), delayed_(delayed) {
    weight_ = parameters.create(name + ".weight", {outputs, inputs}, {1, layout.tp_rank, layout.tp},
                                weight_distribution(inputs, gain));
    if (with_bias)
      bias_ = parameters.create(name + ".bias", {outputs}, whole(layout), kBiasDistribution);
  }

  /// x [N, I/T], this rank's inputs. Returns [N/P, O], outside the region. The bias is added once,
  /// after the sum over the ranks.
  at::Tensor forward(const at::Tensor& x, const ForwardPass& pass) const {
    const at::Tensor y =
        leave_tensor_parallel(linear_product(x, used_weight(weight_, pass), weight_.grad(), fused_,
                                             delayed_, pass.offload),
                              layout_);
    return bias_.defined() && pass.faults.adds_bias(y, bias_) ? y + bias_ : y;
  }

 private:
  Layout layout_;
  bool fused_;
  DelayedGradients* delayed_;
  at::Tensor weight_, bias_;  // [O, I/T], [O]
};

/// A linear layer that every tensor parallel rank has whole, outside of tensor parallel regions
/// (parallel mode `duplicated` of Transformer Engine's layers).
class DuplicatedLinear {
 public:
  /// `fused`, `delayed`: see linear_product(). `delayed` outlives it.
  DuplicatedLinear(Parameters& parameters, const Layout& layout, const std::string& name,
                   std::int64_t inputs, std::int64_t outputs, bool fused = false,
                   DelayedGradients* delayed = nullptr)
      : fused_(fused),
        delayed_(delayed),
        weight_(parameters.create(name + ".weight", {outputs, inputs}, whole(layout),
                                  weight_distribution(inputs, 1.0))) {}

  /// x [N/P, I]. Returns [N/P, O].
  at::Tensor forward(const at::Tensor& x, const ForwardPass& pass) const {
    return linear_product(x, used_weight(weight_, pass), weight_.grad(), fused_, delayed_,
                          pass.offload);
  }

 private:
  bool fused_;
  DelayedGradients* delayed_;
  at::Tensor weight_;  // [O, I]
};

}  // namespace graphproof::workloads
