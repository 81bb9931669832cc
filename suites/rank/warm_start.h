// A warm start: the launcher starts this process while another case still runs, and this process
// waits for files that the launcher writes (reports/record/job/rank_orders.h). It loads its
// libraries at once. It makes the device, MPI, the transports and the first case's communicators
// only when it may use the device, because the other case measures the GPU until then.
#pragma once

#include <chrono>
#include <filesystem>

namespace graphproof::suites {

// The launcher ends these processes itself if it does not need them. The deadline is for a launcher
// that has ended.
inline constexpr std::chrono::hours kGoDeadline{2};

/// Waits until `file` exists. Throws std::runtime_error after `deadline`.
void wait_for_go(const std::filesystem::path& file,
                 std::chrono::milliseconds deadline = kGoDeadline);

}  // namespace graphproof::suites
