// Steps of changing sequence length (axis shape_buckets): their lengths, and the comparisons of the
// two arms that run them.
#pragma once

#include <string>
#include <vector>

#include "suites/checks/attempt/comparison.h"

namespace graphproof::checks {

/// Sequence lengths, in tokens.
using Lengths = std::vector<std::int64_t>;

/// For messages: "12 4", or "none".
std::string text_of(const Lengths& lengths);

/// The lengths that steps are padded to. With N = `shape_buckets` the sequence is divided into N +
/// 2 equal pieces, and these are the ends of all pieces but the last, rounded down to what the
/// ranks can split: into two parts each by context parallelism, and by sequence parallelism.
Lengths buckets_of(const Axes& axes);

inline constexpr ArmPair kInLockstep{"buckets", "buckets_eager", "buckets_graph"};
inline constexpr ArmPair kInFreeRun{"buckets_free_run", "buckets_eager", "buckets_graph"};

}  // namespace graphproof::checks
