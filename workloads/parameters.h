// The parameters of one rank: each is this rank's shard of a full tensor that depends on (seed, name) alone, so every
// layout holds the same model.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "fixtures/named_tensor.h"

namespace torch::autograd {
struct Node;
}

namespace graphproof::workloads {

/// Which slice of the full tensor a rank holds: part `index` of `count` equal parts along dimension 0 or 1.
/// count 1 is the whole tensor.
struct Shard {
  std::int64_t dimension = 0;
  int index = 0, count = 1;
};

/// Element i of the full tensor is mean + half_width * u(i), u uniform in [-1, 1).
struct Distribution {
  double mean = 0, half_width = 0;
};

class Parameters {
 public:
  Parameters(std::uint64_t seed, at::Device device) : seed_(seed), device_(device) {}

  /// Draws the full tensor on the host, keeps the shard and copies it to the device. Leaf, fp32, requires a gradient.
  /// Its gradient accumulator is made here and kept, so that its stream is the one current now: 2.11 has no way to
  /// move an accumulator to another stream later.
  at::Tensor create(const std::string& name, const std::vector<std::int64_t>& full_shape, Shard shard,
                    Distribution distribution);

  /// Those whose name, without "param:", starts with `prefix`, in order of creation: the parameters of a part.
  std::vector<at::Tensor> starting_with(const std::string& prefix) const;

  const std::vector<fixtures::NamedTensor>& all() const { return all_; }  // "param:NAME", in order of creation

 private:
  std::uint64_t seed_;
  at::Device device_;
  std::vector<fixtures::NamedTensor> all_;
  std::vector<std::shared_ptr<torch::autograd::Node>> accumulators_;
};

/// One contiguous buffer that holds every gradient, as Megatron's does: one kernel zeroes it and one collective
/// reduces it. Each parameter's .grad is a view of it for good, so addresses never change.
class GradientBuffer {
 public:
  explicit GradientBuffer(const Parameters& parameters);

  const at::Tensor& flat() const { return flat_; }                // [elements + padding] fp32
  const std::vector<fixtures::NamedTensor>& views() const { return views_; }  // "grad:NAME", shape of the parameter

 private:
  at::Tensor flat_;
  std::vector<fixtures::NamedTensor> views_;
};

}  // namespace graphproof::workloads
