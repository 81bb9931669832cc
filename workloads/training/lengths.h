// Training steps whose microbatches have different lengths, and the lengths to which they are
// padded so that few graphs serve all of them: shape buckets, as serving engines pad a batch to the
// next captured size.
//
// The model's seq_length S is cut into `bound` + 2 equal pieces. The ends of all pieces except the
// last are the buckets. Hence there is one bucket more than a cache of `bound` holds, and there are
// steps that exceed the largest bucket. Ranks that split sequences need lengths that they can
// split, so all lengths are multiples of a unit.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "workloads/faults/hooks/fault_hooks.h"
#include "workloads/training/data.h"

namespace graphproof::workloads {

/// The lengths of a run, in tokens, all multiples of `unit`.
struct LengthSchedule {
  std::int64_t unit = 1;
  std::vector<std::int64_t> buckets;  // ascending, below S
  /// For each step the bucket of its longest microbatch; empty if that exceeds the largest bucket.
  std::vector<std::optional<std::int64_t>> steps;
};

/// What the ranks of `layout` can split: by context parallelism into two parts each, and by
/// sequence parallelism.
std::int64_t length_unit(const Layout& layout);

/// The schedule for a cache of `bound` buckets that captures after `warmup_steps` eager uses of a
/// length. Every bucket is warmed up, used and used again. The first bucket stays in use while the
/// last one evicts another, which is then used again. Throws std::invalid_argument if S is too
/// short for distinct buckets.
LengthSchedule length_schedule(std::int64_t seq_length, std::int64_t bound,
                               std::int64_t warmup_steps, std::int64_t unit = 1);

/// The samples of (seed, step), as make_batch(), with microbatch m of shape [B, S_m]: whole
/// sequences, also where context parallel ranks split them. The longest S_m of the step belongs to
/// microbatch 0 of data parallel rank 0, so all ranks know it without communication; the last
/// microbatch of each rank is shorter if any length is. Weights are 1 / (B * S_m).
Batch make_uneven_batch(const ModelConfig& config, const Layout& layout,
                        const LengthSchedule& schedule, std::uint64_t seed, std::int64_t step,
                        at::Device device);
/// The longest microbatch of a step on any rank.
std::int64_t longest_of(const ModelConfig& config, const LengthSchedule& schedule,
                        std::int64_t step);

/// Pads every microbatch to [B, length] with tokens `filler` and weight 0; a longer one is cut. No
/// token attends to the padding, because it is at the end. Whole sequences too.
Batch padded(const Batch& batch, std::int64_t length, std::int64_t filler,
             faults::FaultHooks& faults);

/// The part of a batch of whole sequences that a rank of `layout` runs: [B, S_m / cp]. The sum of
/// the weights over the context parallel ranks is their number, as with packed sequences (data.h).
Batch own_part(const Batch& batch, const Layout& layout);

}  // namespace graphproof::workloads
