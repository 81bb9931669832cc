// A warm start: the launcher starts this process while another case still ends, and says when its own cases may begin. By
// then libraries are loaded, and device, MPI and transports are there. GRAPHPROOF_GO names the file that says so.
#pragma once

#include <chrono>
#include <filesystem>

namespace graphproof::suites {

inline constexpr char kGoVariable[] = "GRAPHPROOF_GO";

// The launcher ends these processes itself when it has no use for them; a launcher that is gone never comes back.
inline constexpr std::chrono::hours kGoDeadline{2};

/// Returns when `file` is there. Throws std::runtime_error after `deadline`.
void wait_for_go(const std::filesystem::path& file, std::chrono::milliseconds deadline = kGoDeadline);

}  // namespace graphproof::suites
