// Steps of changing sequence length (axis shape_buckets): the lengths, and the comparisons of the
// two arms that run them.
#pragma once

#include <string>
#include <vector>

#include "suites/checks/attempt/comparison.h"

namespace graphproof::checks {

/// Sequence lengths, in tokens.
using Lengths = std::vector<std::int64_t>;

/// "12 4", or "none".
std::string text_of(const Lengths& lengths);

/// The lengths that steps are padded to: the ends of the equal pieces of a sequence that a bound of
/// `shape_buckets` makes, all but the last.
Lengths buckets_of(const Axes& axes);

inline constexpr ArmPair kInLockstep{"buckets", "buckets_eager", "buckets_graph"};
inline constexpr ArmPair kInFreeRun{"buckets_free_run", "buckets_eager", "buckets_graph"};

}  // namespace graphproof::checks
