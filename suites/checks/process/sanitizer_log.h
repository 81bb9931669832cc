// Reads the log of compute-sanitizer of NVIDIA. Its lines begin with "=========", whatever its
// tool. Source: the user manual of Compute Sanitizer, 2020.3 to 2026.4, with its examples.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace graphproof::checks {

/// An error that the tool reported. A part that the log does not name is empty.
struct SanitizerReport {
  std::string kind;        // "Invalid __global__ write of size 4 bytes"
  std::string kernel;      // "fill(float *, int)"
  std::string address;     // "Address 0x7f65 is out of bounds and is 1 bytes after ..."
  std::string host_frame;  // the call of the host that launched the kernel, or its graph

  bool operator==(const SanitizerReport&) const = default;
};

/// What a log says. Nothing of it is there in an empty log.
struct SanitizerLog {
  std::vector<SanitizerReport> reports;  // those that were printed
  /// The number of errors, summed over the processes; nothing unless each process that began has
  /// its summary, which stands at the end of its part of the log.
  std::optional<std::int64_t> errors;
  /// The first line with which the tool says that it did not do its work, or not all of it.
  std::string trouble;
};
SanitizerLog read_sanitizer_log(std::string_view text);

/// An error that is known to be none.
struct AllowedReport {
  std::string_view tool;    // memcheck, racecheck, initcheck, synccheck
  std::string_view kind;    // the beginning of its kind
  std::string_view kernel;  // a part of the kernel's name
  std::string_view source;  // where it is shown that the report is wrong
};
/// The known ones. All rows have a source.
std::span<const AllowedReport> allowed_reports();
bool allowed(const SanitizerReport& report, std::string_view tool,
             std::span<const AllowedReport> rows);

}  // namespace graphproof::checks
