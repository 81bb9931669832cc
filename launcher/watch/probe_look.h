// A quick look at what the probes of running processes have written, without reading their lines:
// which process, whether anything changed, and which driver calls have not returned.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "reports/record/probe_file/layout.h"

namespace graphproof::launcher {

/// A driver call that has begun and not returned.
struct OpenCall {
  std::int64_t thread = 0;
  std::string name;  ///< of the thread
  std::string call;
  std::int64_t since_ns = 0;  ///< CLOCK_MONOTONIC of its host
};

/// The file of one probe as it is now.
struct ProbeLook {
  std::string name;  ///< of the file, without the ending
  std::string host;
  std::int64_t pid = 0, start_ticks = 0;  ///< together they name one process of its host
  std::int64_t parent = 0;                ///< process id, when the probe started
  record::probe_file::State state = record::probe_file::State::watching;
  /// Of everything that is written but the counts of repeated events: while a capture is open these
  /// count the queries of a thread that polls, such as the watchdog of PyTorch, for as long as it
  /// waits.
  std::uint64_t digest = 0;
  std::vector<OpenCall> open_calls;
};

/// The name of this host as probes write it.
std::string own_host();

/// Files that cannot be read, or that no probe wrote, are left out. Reads each file as a whole:
/// about 1 MiB for a process.
std::vector<ProbeLook> look_at_probes(const std::filesystem::path& folder);

}  // namespace graphproof::launcher
