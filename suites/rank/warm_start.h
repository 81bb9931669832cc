// A warm start: the launcher starts this process while another case still runs, and says when its
// own may begin. GRAPHPROOF_GO names the file that says so. By then libraries are loaded, and
// device, MPI, transports and the first case's communicators are there: these are made as soon as
// the same file with the suffix kDeviceSuffix is there, since the other case measures the GPU until
// then.
#pragma once

#include <chrono>
#include <filesystem>

namespace graphproof::suites {

inline constexpr char kGoVariable[] = "GRAPHPROOF_GO";
inline constexpr char kDeviceSuffix[] = ".device";

// The launcher ends these processes itself when it has no use for them; a launcher that is gone
// never comes back.
inline constexpr std::chrono::hours kGoDeadline{2};

/// Returns when `file` is there. Throws std::runtime_error after `deadline`.
void wait_for_go(const std::filesystem::path& file,
                 std::chrono::milliseconds deadline = kGoDeadline);

}  // namespace graphproof::suites
