// Buckets, as in Megatron-LM: the pieces of a flat buffer of parameters (ParameterBuffer) that are
// communicated together among the ranks that hold the same parameters. Gradients are reduced bucket
// by bucket, and with the distributed optimizer parameters are gathered bucket by bucket. Each rank
// of a bucket's group owns an equal part of it.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <string>
#include <vector>

#include "workloads/config/model_config.h"
#include "workloads/parameters/parameters.h"

namespace graphproof::workloads {

/// A contiguous range of elements of a flat buffer.
struct FlatRange {
  std::int64_t begin = 0, elements = 0;
  at::Tensor of(const at::Tensor& flat) const { return flat.narrow(0, begin, elements); }
};

/// One bucket.
struct Bucket : FlatRange {
  std::string group;                    // the ranks that hold the same parameters
  std::vector<std::size_t> parameters;  // indices in Parameters::all(); each is whole
  /// The part that this rank owns. REQUIRES: the size of the group divides
  /// ParameterBuffer::kAlignmentElements.
  FlatRange own() const;
};

/// Cuts `buffer` into buckets, in its order: one for the parameters that all data parallel ranks
/// hold, or several if the reduction is overlapped, and one for experts if there are any. With
/// distributed_optimizer, an embedding that two pipeline stages hold has its own bucket.
std::vector<Bucket> cut_buckets(const ModelConfig& config, const Layout& layout,
                                const Parameters& parameters, const ParameterBuffer& buffer);

}  // namespace graphproof::workloads
