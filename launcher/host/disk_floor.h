// How much space a run folder needs so that cases may start.
#pragma once

#include <cstdint>

namespace graphproof::launcher {

// Below this much free space in the run folder nothing more is started, so that neither ranks nor
// journal meet a full disk: a case leaves 200 KiB of evidence, and logs are longer.
inline constexpr std::int64_t kDiskFloor_bytes = 16 << 20;

}  // namespace graphproof::launcher
