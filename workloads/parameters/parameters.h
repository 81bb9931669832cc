// The parameters of one rank: each is this rank's shard of a full tensor that depends on (seed,
// name) alone, so every layout holds the same model.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "fixtures/tensors/named_tensor.h"
#include "workloads/config/model_config.h"

namespace torch::autograd {
struct Node;
}

namespace graphproof::workloads {

/// Which slice of the full tensor a rank holds: part `index` of `count` equal parts along a
/// dimension. count 1 is the whole tensor. `expert`: the parts lie on the expert parallel ranks, so
/// the gradient is reduced over the group edp instead of dp, and each may be cut once more, over
/// the expert tensor parallel ones. `by_tokens`: the tensor parallel ranks hold it whole and use it
/// on different tokens, so the gradient is summed over the group tp.
struct Shard {
  std::int64_t dimension = 0;
  int index = 0, count = 1;
  bool expert = false, by_tokens = false;
  std::int64_t inner_dimension = 0;
  int inner_index = 0, inner_count = 1;

  /// A view of the slice.
  at::Tensor of(const at::Tensor& full) const;
};

/// Of a parameter that works outside tensor parallel regions.
inline Shard whole(const Layout& layout) { return {.by_tokens = layout.sequence_parallel}; }

/// Element i of the full tensor is mean + half_width * u(i), u uniform in [-1, 1).
struct Distribution {
  double mean = 0, half_width = 0;
};

class Parameters {
 public:
  Parameters(std::uint64_t seed, at::Device device, at::ScalarType type = at::kFloat)
      : seed_(seed), device_(device), type_(type) {}

  /// Draws the full tensor in fp32 on the host, keeps the shard, rounds it to the type and copies
  /// it to the device. Leaf, requires a gradient, which is fp32 whatever the type. Its gradient
  /// accumulator is made here and kept, so that its stream is the one current now: 2.11 has no way
  /// to move an accumulator to another stream later.
  at::Tensor create(const std::string& name, const std::vector<std::int64_t>& full_shape,
                    Shard shard, Distribution distribution);

  /// Those whose name, without "param:", starts with `prefix`, in order of creation: the parameters
  /// of a part.
  std::vector<at::Tensor> starting_with(const std::string& prefix) const;

  const std::vector<fixtures::NamedTensor>& all() const {
    return all_;
  }  // "param:NAME", in order of creation
  const std::vector<Shard>& shards() const { return shards_; }  // same order

 private:
  std::uint64_t seed_;
  at::Device device_;
  at::ScalarType type_;
  std::vector<fixtures::NamedTensor> all_;
  std::vector<Shard> shards_;
  std::vector<std::shared_ptr<torch::autograd::Node>> accumulators_;
};

/// One contiguous buffer with a place for each parameter: those used on different tokens by tensor
/// parallel ranks first, then the others that every data parallel rank holds, then experts, so that
/// each kind is reduced by one collective. Zero at first; padding stays zero.
class ParameterBuffer {
 public:
  // Views start at multiples of 64 elements (256 bytes of fp32), so that kernels choose the vector
  // width that they would choose for a tensor of its own.
  static constexpr std::int64_t kAlignmentElements = 64;

  /// `prefix`: what a view's name begins with, in front of the parameter's name.
  ParameterBuffer(const Parameters& parameters, const std::string& prefix,
                  at::ScalarType type = at::kFloat);

  const at::Tensor& flat() const { return flat_; }  // [elements + padding]
  at::Tensor by_tokens() const { return flat_.narrow(0, 0, by_tokens_elements_); }
  at::Tensor shared() const {
    return flat_.narrow(0, 0, shared_elements_);
  }  // by_tokens() and the others
  at::Tensor experts() const {
    return flat_.narrow(0, shared_elements_, flat_.numel() - shared_elements_);
  }
  /// PREFIX + NAME, shape of the parameter, in order of the parameters.
  const std::vector<fixtures::NamedTensor>& views() const { return views_; }
  std::int64_t begin(std::size_t parameter) const {
    return begins_[parameter];
  }  // of its view in flat()

 private:
  at::Tensor flat_;
  std::vector<std::int64_t> begins_;
  std::int64_t by_tokens_elements_ = 0, shared_elements_ = 0;
  std::vector<fixtures::NamedTensor> views_;
};

/// Every gradient in one buffer, as Megatron's: one kernel zeroes it and a collective reduces it.
/// Each parameter's .grad is its view "grad:NAME" for good, so addresses never change, and autograd
/// adds to it in fp32 whatever the parameter's type.
class GradientBuffer final : public ParameterBuffer {
 public:
  explicit GradientBuffer(const Parameters& parameters);
};

}  // namespace graphproof::workloads
