// The distributed optimizer's parameters, as Megatron-LM's DistributedOptimizer (stage 1 of ZeRO,
// Rajbhandari et al. 2020): each data parallel rank updates the elements that it owns of every
// bucket (buckets.h) and keeps optimizer state for these alone; afterwards the ranks gather the
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

class ParameterShards {
 public:
  /// Moves every parameter into one flat buffer of its own type, laid out as `gradients`, and keeps
  /// its values. Before anything holds a parameter's address.
  /// `faults` outlives it.
  ParameterShards(const Parameters& parameters, const GradientBuffer& gradients,
                  std::vector<Bucket> buckets, faults::FaultHooks& faults);

  const std::vector<Bucket>& buckets() const { return buckets_; }
  const at::Tensor& flat() const {
    return flat_.flat();
  }  // [elements + padding] of the parameters' type

  /// What this rank owns of a flat buffer, bucket by bucket. [own_elements()]: a view where there
  /// is one bucket, else a copy.
  at::Tensor own(const at::Tensor& flat) const;
  std::int64_t own_elements() const { return own_elements_; }

  /// What this rank owns of one parameter: [elements] of a flat buffer, and of own().
  struct Piece {
    std::size_t parameter;  // its index
    Stretch flat, own;
  };
  const std::vector<Piece>& pieces() const {
    return pieces_;
  }  // in order of the parameters, those of other ranks left out

  /// Enqueues on the current stream: every rank's part of the bucket to all ranks of its group.
  /// Capturable. REQUIRES: `bucket` is one of buckets().
  void gather(const Bucket& bucket) const;

 private:
  faults::FaultHooks& faults_;
  std::vector<Bucket> buckets_;
  ParameterBuffer flat_;
  at::Tensor sent_;  // [own_elements()]: a gather may not read where it writes, and a copy made
                     // beside another stream stays there
  std::int64_t own_elements_ = 0;
  std::vector<Piece> pieces_;
};

}  // namespace graphproof::workloads
