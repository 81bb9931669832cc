// The parameters under the distributed optimizer (Megatron-LM's DistributedOptimizer; stage 1 of
// ZeRO, Rajbhandari et al. 2020). Each data parallel rank keeps optimizer state only for the
// elements of each bucket (buckets.h) that it owns, updates these, and then the ranks gather the
// parameters from each other.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <string>
#include <vector>

#include "fixtures/tensors/named_tensor.h"
#include "workloads/faults/hooks/fault_hooks.h"
#include "workloads/parameters/buckets.h"
#include "workloads/parameters/parameters.h"

namespace graphproof::workloads {

/// Used by the thread that runs the step.
class ParameterShards {
 public:
  /// Moves every parameter, with its values, into one flat buffer with the layout of `gradients`.
  /// Must be constructed before anything uses the address of a parameter. `faults` outlives it.
  /// Without `make` the buffer is the allocator's.
  ParameterShards(const Parameters& parameters, const GradientBuffer& gradients,
                  std::vector<Bucket> buckets, faults::FaultHooks& faults,
                  const MakeBuffer& make = {});

  const std::vector<Bucket>& buckets() const { return buckets_; }
  /// [elements + padding] of the type of the parameters.
  const at::Tensor& flat() const { return flat_.flat(); }

  /// The elements of a flat buffer that this rank owns, bucket by bucket, [own_elements()]. A view
  /// if there is one bucket, otherwise a copy.
  at::Tensor own(const at::Tensor& flat) const;
  std::int64_t own_elements() const { return own_elements_; }

  /// The part of one parameter that this rank owns, as a range of flat() and as one of own().
  struct Piece {
    std::size_t parameter;  // index in Parameters::all()
    FlatRange flat, own;
  };
  /// The pieces of this rank, in the order of the parameters.
  const std::vector<Piece>& pieces() const { return pieces_; }

  /// Enqueues on the current stream the gather of a bucket over its group. Capturable. REQUIRES:
  /// `bucket` is one of buckets().
  void gather(const Bucket& bucket) const;

 private:
  faults::FaultHooks& faults_;
  std::vector<Bucket> buckets_;
  ParameterBuffer flat_;
  /// [own_elements()]: the elements to send, because a gather must not read where it writes.
  /// Static, because a temporary copy would be released while the side stream still reads it.
  at::Tensor sent_;
  std::int64_t own_elements_ = 0;
  std::vector<Piece> pieces_;
};

}  // namespace graphproof::workloads
