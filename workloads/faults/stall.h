// The fault one_rank_stalls for a test that cannot wait until somebody ends the rank.
#pragma once

#include <chrono>
#include <memory>

#include "workloads/faults/hooks/fault_hooks.h"

namespace graphproof::faults {

std::shared_ptr<FaultHooks> stalling_rank(std::chrono::milliseconds stall);

}  // namespace graphproof::faults
