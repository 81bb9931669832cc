// The layout reference: a parallel step is compared with the single-rank model on the same global
// batch. This file has the distance and its bound. Both arms of a lockstep run have the same
// layout, so only this comparison can find a defect of the layout.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <span>
#include <string>

#include "reports/record/evidence/evidence.h"
#include "suites/case/step_config.h"
#include "workloads/config/model_config.h"
#include "workloads/parameters/parameters.h"

namespace graphproof::suites {

/// The shard of `full` that a rank holds. Throws record::Error if its shape is not `shape`.
at::Tensor own_shard(const at::Tensor& full, at::IntArrayRef shape, const workloads::Shard& shard);

/// Whether the second of two steps is compared instead of the first. That is so for a distributed
/// optimizer, because the parameters that ranks gather from each other first matter in the second
/// step. There are two exceptions. With rounded weights, a last-bit difference of the first update
/// can move a weight across a rounding border, and then no bound of reordered sums holds. With
/// experts under Adam, the first update moves each element by the rate in the direction of its
/// gradient's sign; the sign of a gradient that is nearly zero is arbitrary, and a token may reach
/// another expert (seen in a random case). Check D53.replicas verifies that all ranks gathered the
/// same parameters.
bool second_step_compared(const workloads::ModelConfig& model);

/// The largest difference that reordered sums, and the roundings of 16-bit values that follow from
/// them, may cause, relative to the largest element of a whole tensor. `why` is the reason in
/// words.
struct ReferenceBound {
  double relative = 0;
  std::string why;
};
/// The bound for `single`, a configuration of single_rank(), whose sums are the longest.
ReferenceBound reference_bound(const StepConfig& single);

/// By which part of themselves parameters are changed to see how far rounding moves the results of
/// `single`: half an ulp where it rounds to 16 bits, otherwise what a single one of the sums that
/// reference_bound() counts may be off by.
double parameter_rounding(const StepConfig& single);

/// How far rounding alone can move an element by the end of step `step` (from 0), relative to the
/// largest element of its tensor, where the same operators add in another order: the bound of a
/// step for each step so far, because the error of one enters the next through its update, which is
/// smaller than the parameters. For the rank's model with the longest sums of its layout.
ReferenceBound rounding_bound(const StepConfig& config, std::int64_t step);

/// One tensor of the parallel model and its counterpart.
struct ReferencePair {
  /// `whole` is the full tensor of which `single` is a shard, if it is one. The largest element of
  /// `whole` is the measure of the bound, because a shard may consist of a few elements that are
  /// sums which nearly cancel.
  ReferencePair(std::string name, at::Tensor parallel, at::Tensor single,
                const at::Tensor& whole = {});

  std::string name;
  /// In host memory, fp32 and of one shape. Gradients of bf16 parameters are fp32 too.
  at::Tensor parallel, single;
  double largest;
  /// The largest difference of the whole tensor between a step on one rank and the same step in
  /// fp32, or with parameters changed by parameter_rounding(). 0 if it was not computed.
  double rounding = 0;
};

/// The pair that is nearest to its bound or exceeds it most. A NaN is never within a bound.
struct ReferenceDistance {
  std::int64_t tensors = 0;
  std::string worst;  // name of that pair
  double max_abs = 0, max_rel = 0;
  double bound = 0;     // of that pair, absolute
  double rounding = 0;  // of that pair, if it determines the bound; otherwise 0
  bool within() const { return max_abs <= bound; }
};
/// A tensor may differ by `bound`, or by three times its `rounding` if that is more. `bound` counts
/// roundings and does not know how much of a sum cancels, as in a mamba layer's step bias, whose
/// few elements are sums over all tokens, nor how steep a deep model is.
ReferenceDistance reference_distance(std::span<const ReferencePair> pairs,
                                     const ReferenceBound& bound);

/// The part of an evidence line for reference_distance(), with the reason of the bound.
record::Distance distance_of(std::span<const ReferencePair> pairs, const ReferenceBound& bound);

}  // namespace graphproof::suites
