// Removes the jobs of a run that ends from the queue of a scheduler. A controller that is down when
// the run ends knows its jobs again when it is back, and keeps nodes for them until their time
// limit, although the run has ended. So the controller is asked until it has answered. This waits,
// so it is only for the end of a run.
#pragma once

#include <cstdint>
#include <string>

#include "launcher/host/child.h"

namespace graphproof::cluster {

// A controller that is restarted is back within this time.
inline constexpr std::int64_t kClear_ms = 60000;

/// Runs `cancel` until it succeeds, `limit_ms` at most. Returns "" if it did; otherwise what the
/// user should know and do.
std::string clear_queue(const launcher::Command& cancel, std::int64_t limit_ms);

}  // namespace graphproof::cluster
