// A run that ends leaves no job in a scheduler's queue. A controller that is down when the run ends
// knows its jobs again when it is back, and keeps nodes for them until their time limit, although
// nobody waits for them any more: so it is asked until it has answered. Waits: for the end of a
// run.
#pragma once

#include <cstdint>
#include <string>

#include "launcher/host/child.h"

namespace graphproof::cluster {

// A controller that is started anew is back within this time.
inline constexpr std::int64_t kClear_ms = 60000;

/// Runs `cancel` until it succeeds, `limit_ms` at most. "" then; otherwise what the user should
/// know and do.
std::string clear_queue(const launcher::Command& cancel, std::int64_t limit_ms);

}  // namespace graphproof::cluster
