// Whether what the driver counts on a GPU is the memory of this case alone. The driver counts the
// memory of every process, and not everywhere can it be asked whose memory is whose: its management
// library may be absent, and in a container it knows other process ids.
#pragma once

#include <string>

#include "suites/checks/attempt/attempt.h"

namespace graphproof::checks {

/// What of the memory of a process beside its allocator (context, modules, communicators,
/// executable graphs) may be freed between two steps. While solo_eager runs, and between replays of
/// solo_graph, a process frees nothing there that it does not take again. The largest fall of 3,000
/// ranks that had their GPUs for themselves was 50 MiB; of 68 ranks whose GPUs other programs used,
/// 56 saw a larger one, up to 4.7 GiB.
inline constexpr std::int64_t kLargestOwnFallBytes = 64 << 20;

/// Why the driver's count is not of this case alone; empty if nothing says so.
std::string foreign_memory(const Attempt& attempt);

}  // namespace graphproof::checks
