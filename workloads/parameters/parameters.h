// The parameters of one rank and their flat buffers. Each parameter is this rank's shard of a full
// tensor that depends only on (seed, name), so every layout holds the same model.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "fixtures/tensors/named_tensor.h"
#include "workloads/config/model_config.h"

namespace torch::autograd {
struct Node;
}

namespace graphproof::workloads {

/// The slice of the full tensor that a rank holds: part `index` of `count` equal parts along
/// `dimension`; count 1 is the whole tensor. `expert`: the parts are on the expert parallel ranks,
/// so the gradient is reduced over the group edp instead of dp, and each part may be split again
/// over the expert tensor parallel ranks (inner_*). `by_tokens`: all tensor parallel ranks hold the
/// whole tensor and use it on different tokens, so the gradient is summed over the group tp.
struct Shard {
  std::int64_t dimension = 0;
  int index = 0, count = 1;
  bool expert = false, by_tokens = false;
  std::int64_t inner_dimension = 0;
  int inner_index = 0, inner_count = 1;

  /// The slice, a view of `full`.
  at::Tensor of(const at::Tensor& full) const;
};

/// The shard of a parameter that is used outside tensor parallel regions.
inline Shard whole(const Layout& layout) { return {.by_tokens = layout.sequence_parallel}; }

/// Element i of the full tensor is mean + half_width * u(i), u uniform in [-1, 1).
struct Distribution {
  double mean = 0, half_width = 0;
};

/// Creates the parameters and keeps them. Used by one thread.
class Parameters {
 public:
  /// `frozen`: they get no gradients.
  Parameters(std::uint64_t seed, at::Device device, at::ScalarType type = at::kFloat,
             bool frozen = false)
      : seed_(seed), device_(device), type_(type), frozen_(frozen) {}

  /// Draws the full tensor in fp32 on the host, and returns this rank's shard of it, rounded to the
  /// type, on the device: a leaf that requires a gradient unless it is frozen. The gradient is
  /// fp32, or fp64 if the type is. Also makes and keeps the gradient accumulator, so that it
  /// belongs to the stream that is current now; PyTorch 2.11 cannot move an accumulator to another
  /// stream later.
  at::Tensor create(const std::string& name, const std::vector<std::int64_t>& full_shape,
                    Shard shard, Distribution distribution);

  /// The parameters whose name, without "param:", starts with `prefix`, in order of creation.
  std::vector<at::Tensor> starting_with(const std::string& prefix) const;

  /// "param:NAME", in order of creation; the shards in the same order.
  const std::vector<fixtures::NamedTensor>& all() const { return all_; }
  const std::vector<Shard>& shards() const { return shards_; }

 private:
  std::uint64_t seed_;
  at::Device device_;
  at::ScalarType type_;
  bool frozen_;
  std::vector<fixtures::NamedTensor> all_;
  std::vector<Shard> shards_;
  std::vector<std::shared_ptr<torch::autograd::Node>> accumulators_;
};

/// Makes the memory of a flat buffer: [elements] zeros.
using MakeBuffer = std::function<at::Tensor(std::int64_t elements, const at::TensorOptions&)>;

/// One contiguous buffer with a place for each parameter: first those with Shard::by_tokens, then
/// the others that every data parallel rank holds, then those of experts, so that one collective
/// can reduce each kind. Zero at first; the padding stays zero.
class ParameterBuffer {
 public:
  /// Views start at multiples of 64 elements (256 bytes of fp32), so that kernels choose the same
  /// vector width as for a separate tensor.
  static constexpr std::int64_t kAlignmentElements = 64;

  /// `prefix` precedes the parameter's name in the name of a view. Without `make` the memory is
  /// the allocator's.
  ParameterBuffer(const Parameters& parameters, const std::string& prefix,
                  at::ScalarType type = at::kFloat, const MakeBuffer& make = {});

  const at::Tensor& flat() const { return flat_; }  // [elements + padding]
  at::Tensor by_tokens() const { return flat_.narrow(0, 0, by_tokens_elements_); }
  /// by_tokens() and the others that every data parallel rank holds.
  at::Tensor shared() const { return flat_.narrow(0, 0, shared_elements_); }
  at::Tensor experts() const {
    return flat_.narrow(0, shared_elements_, flat_.numel() - shared_elements_);
  }
  /// PREFIX + NAME, with the shapes of the parameters and in their order.
  const std::vector<fixtures::NamedTensor>& views() const { return views_; }
  /// The index in flat() at which the view of a parameter begins.
  std::int64_t begin(std::size_t parameter) const { return begins_[parameter]; }

 private:
  at::Tensor flat_;
  std::vector<std::int64_t> begins_;
  std::int64_t by_tokens_elements_ = 0, shared_elements_ = 0;
  std::vector<fixtures::NamedTensor> views_;
};

/// All gradients in one buffer, as in Megatron-LM: one kernel sets it to zero and one collective
/// reduces it. The .grad of each parameter is always its view "grad:NAME", so addresses never
/// change, and autograd adds to it in fp32 for every type of parameter but fp64.
class GradientBuffer final : public ParameterBuffer {
 public:
  explicit GradientBuffer(const Parameters& parameters, const MakeBuffer& make = {});
};

}  // namespace graphproof::workloads
