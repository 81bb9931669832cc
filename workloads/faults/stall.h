// The fault one_rank_stalls with a chosen duration, for a test that does not end the rank.
#pragma once

#include <chrono>
#include <memory>

#include "workloads/faults/hooks/fault_hooks.h"

namespace graphproof::faults {

/// Rank 1 of the tensor parallel ranks sleeps for `stall` before its second replay of a graph.
std::shared_ptr<FaultHooks> stalling_rank(std::chrono::milliseconds stall);

}  // namespace graphproof::faults
