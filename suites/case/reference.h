// The layout reference: how far a parallel step may lie from the single-rank model over the same
// global batch, and how far it lies. Both arms of a lockstep run share a layout, so a defect of the
// layout shows only here.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <span>
#include <string>

#include "reports/record/text/fields.h"
#include "suites/case/step_config.h"
#include "workloads/config/model_config.h"
#include "workloads/parameters/parameters.h"

namespace graphproof::suites {

/// The part of `full` that a rank holds as a tensor of `shape`. Throws record::Error where its
/// shard has another shape.
at::Tensor own_shard(const at::Tensor& full, at::IntArrayRef shape, const workloads::Shard& shard);

/// Of a distributed optimizer the second of two steps is compared, where what ranks make of each
/// other's parameters shows. Not with rounded weights: a difference of the last bit that the first
/// update leaves may put one on the other side of a rounding, and no bound of reordered sums holds
/// behind that. Nor with experts under Adam, whose first update moves each element by the rate in
/// the direction of its sign: one that is zero but for its last bits goes either way, and a token
/// to another expert (seen in a random case). That all ranks gathered the same is check
/// D53.replicas'.
bool second_step_compared(const workloads::ModelConfig& model);

/// What reordered sums, and roundings of bf16 values that differ by them, may change, relative to
/// the largest element of a whole tensor, with the reason in words.
struct ReferenceBound {
  double relative = 0;
  std::string why;
};
/// `single` is single_rank()'s configuration: its sums are the longest.
ReferenceBound reference_bound(const StepConfig& single);

struct ReferencePair {
  /// `whole`: what `single` is a shard of, if of anything. Its largest element is the measure: a
  /// shard of one or two elements, each a sum that nearly cancels, does not tell what its roundings
  /// are.
  ReferencePair(std::string name, at::Tensor parallel, at::Tensor single,
                const at::Tensor& whole = {});

  std::string name;
  at::Tensor parallel,
      single;  // on the host, fp32, of one shape; gradients are fp32 for bf16 parameters too
  double largest;
  /// What rounding to 16 bits does to the whole tensor on one rank: the largest difference from the
  /// same step in fp32. 0 where nobody asked.
  double rounding = 0;
};

/// The pair that comes nearest to its bound, or exceeds it most. A NaN on either side is never
/// within a bound.
struct ReferenceDistance {
  std::int64_t tensors = 0;
  std::string worst;                           // name of the pair that the numbers belong to
  double max_abs = 0, max_rel = 0, bound = 0;  // bound is that pair's, in the tensor's own unit
  double rounding = 0;                         // that pair's, where its bound comes from there
  bool within() const { return max_abs <= bound; }
};
/// A tensor may lie as far off as `bound` says, or three times its `rounding` if that is more: a
/// count of roundings does not know how much of a sum cancels, as in the few elements of a mamba
/// layer's step bias, each a sum over all tokens.
ReferenceDistance reference_distance(std::span<const ReferencePair> pairs,
                                     const ReferenceBound& bound);

/// The same as an evidence line tells it, with the bound's reason.
record::Json distance_fields(std::span<const ReferencePair> pairs, const ReferenceBound& bound);

}  // namespace graphproof::suites
