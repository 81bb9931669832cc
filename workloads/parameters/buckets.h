// Into which pieces the flat buffers of a rank's parameters (ParameterBuffer) are cut for
// communication among the data parallel ranks that hold the same ones, as Megatron-LM's buckets:
// gradients are reduced, and with the distributed optimizer parameters gathered, bucket by bucket.
// Each rank of a bucket's group owns an equal part of it.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <string>
#include <vector>

#include "workloads/config/model_config.h"
#include "workloads/parameters/parameters.h"

namespace graphproof::workloads {

/// A stretch of elements of a flat buffer.
struct Stretch {
  std::int64_t begin = 0, elements = 0;
  at::Tensor of(const at::Tensor& flat) const { return flat.narrow(0, begin, elements); }
};

struct Bucket : Stretch {
  std::string group;                    // the ranks that hold the same parameters
  std::vector<std::size_t> parameters;  // their indices; none is cut
  /// What this rank owns of it. REQUIRES: the group's size divides
  /// ParameterBuffer::kAlignmentElements.
  Stretch own() const;
};

/// Of every element of `buffer`, in its order: one bucket for what all data parallel ranks hold, or
/// several beside overlapped reduction, and one for experts where there are any. With
/// distributed_optimizer, embeddings that two pipeline stages hold have a bucket to themselves.
std::vector<Bucket> cut_buckets(const ModelConfig& config, const Layout& layout,
                                const Parameters& parameters, const ParameterBuffer& buffer);

}  // namespace graphproof::workloads
