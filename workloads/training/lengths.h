// Training steps whose microbatches have lengths of their own, and the lengths that they are padded
// up to, so that few graphs serve all of them: shape buckets, as serving engines pad a batch to the
// next size that they captured.
//
// S, the model's seq_length, is cut into `bound` + 2 equal pieces; all ends of pieces but the last
// are buckets. So there is one bucket more than a cache of `bound` holds, and a step of more than
// the largest bucket, which has none.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "workloads/faults/hooks/fault_hooks.h"
#include "workloads/training/data.h"

namespace graphproof::workloads {

struct LengthSchedule {
  std::vector<std::int64_t> buckets;  // ascending, below S
  /// Of each step: the bucket of its longest microbatch; nothing where that is beyond the largest.
  std::vector<std::optional<std::int64_t>> steps;
};

/// Of a cache of `bound` buckets whose graphs are captured after `warmup_steps` eager uses of a
/// length. Every bucket is warmed up, used and used again; the first one stays in use while the
/// last one takes the place of another, which then comes back. Throws std::invalid_argument where S
/// is too short for buckets of their own length.
LengthSchedule length_schedule(std::int64_t seq_length, std::int64_t bound,
                               std::int64_t warmup_steps);

/// The samples of (seed, step), as make_batch(): microbatch m [B, S_m], S_m at most that of the
/// step, which microbatch 0 of data parallel rank 0 has. So all ranks know the longest without
/// asking each other. Weights are 1 / (B * S_m).
Batch make_uneven_batch(const ModelConfig& config, const Layout& layout,
                        const LengthSchedule& schedule, std::uint64_t seed, std::int64_t step,
                        at::Device device);
/// The longest microbatch of a step on any rank.
std::int64_t longest_of(const ModelConfig& config, const LengthSchedule& schedule,
                        std::int64_t step);

/// Every microbatch [B, length], what is behind its end `filler` and of no weight; a longer one is
/// cut. Nothing attends to the padding, which is behind everything else.
Batch padded(const Batch& batch, std::int64_t length, std::int64_t filler,
             faults::FaultHooks& faults);

}  // namespace graphproof::workloads
