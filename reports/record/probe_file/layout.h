// The layout of the file in which the probe of a watched process keeps its evidence. The probe maps
// the file shared and writes into the mapping, so the kernel keeps every finished record when the
// process is killed. The file is a header followed by records:
//
//   Header | record | record | ... | room that is allocated and not used yet
//
// A record is a RecordHeader, its payload, and zeros up to a multiple of 8 bytes. Records are only
// appended; `Header::committed` is raised after the last byte of a record is written. The payload
// of a `line` is one JSON object. The payloads of all other types are structs of counters that the
// process keeps updating in place, so that thousands of steps take no more room than one.
//
// All numbers are little-endian, as on every machine that CUDA runs on.
#pragma once

#include <cstdint>
#include <string_view>

namespace graphproof::record::probe_file {

inline constexpr std::string_view kMagic = "GPPROBE1";
inline constexpr std::uint32_t kVersion = 1;
/// Files of probes end in this.
inline constexpr std::string_view kExtension = ".probe";

enum class State : std::uint32_t {
  watching = 1,  ///< also the state of a process that was killed
  switched_off = 2,
  ended = 3,  ///< the process ran its exit handlers
};

enum class RecordType : std::uint32_t {
  line = 1,
  executable = 2,
  thread = 3,
  tally = 4,
  series = 5
};

struct RecordHeader {
  std::uint32_t bytes = 0;  ///< of the payload, without padding
  RecordType type = RecordType::line;
};
static_assert(sizeof(RecordHeader) == 8);

constexpr std::uint64_t padded(std::uint64_t bytes) { return (bytes + 7) / 8 * 8; }

/// What the whole process did. Times are CLOCK_MONOTONIC in nanoseconds.
struct ProcessCounters {
  std::int64_t steps = 0;  ///< training steps, as the optimizers count them
  std::int64_t first_step_ns = 0, last_step_ns = 0;
  std::int64_t captures = 0, captures_failed = 0;
  std::int64_t executables = 0, executables_live = 0, executables_live_most = 0;
  /// Launches of executable graphs that the process had destroyed when their records were reused.
  std::int64_t retired_executables = 0, retired_launches = 0;
  std::int64_t device_allocated_bytes = 0, device_allocated_bytes_most = 0;
  std::int64_t host_allocated_bytes = 0;
};

/// One executable graph.
struct ExecutableCounters {
  std::int64_t executable = 0;  ///< number in the order of instantiation, from 1
  std::int64_t launches = 0, launches_failed = 0, uploads = 0;
  /// Updates as a whole and of single nodes (parameters or enabling), and those that were refused.
  std::int64_t updates = 0, node_updates = 0, updates_refused = 0;
  /// Updates after which the graph points to other memory.
  std::int64_t updates_of_operands = 0;
  std::int64_t first_launch_ns = 0, last_launch_ns = 0;
  std::int64_t first_step = 0, last_step = 0;  ///< steps of the process at those launches
  /// Training steps with a launch, and the fewest and most launches in one of them that ended.
  std::int64_t steps = 0, launches_per_step_least = 0, launches_per_step_most = 0;
  std::int64_t launches_in_step = 0;  ///< in the step of the last launch
  /// Kernels that the launching thread started outside graphs since its previous graph launch; none
  /// for its first one.
  std::int64_t kernels_before = 0;
  /// Launches after memory of an operand had been given back to the driver.
  std::int64_t launches_after_free = 0;
  std::int64_t destroyed_ns = 0;  ///< 0 while it exists
  std::int64_t record_reused = 0;
  /// Launches by a thread that had launched a graph before. 0 in files of probes that did not count
  /// them; their `kernels_before` has also what ran before a thread's first launch.
  std::int64_t launches_after_another = 0;
};

/// One thread that called the driver.
struct ThreadCounters {
  std::int64_t tid = 0;
  char name[16] = {};
  std::int64_t kernels = 0;           ///< launched outside graphs and captures
  std::int64_t kernels_captured = 0;  ///< launched into a capture
  std::int64_t graph_launches = 0;
  std::int64_t last_call_ns = 0;
  char inside[40] = {};  ///< driver call that has begun and not returned; empty otherwise
};

/// How often something happened that a `line` with the same number describes.
struct TallyCounters {
  std::int64_t tally = 0;  ///< number in the process, from 1
  std::int64_t count = 0, sum = 0;
  std::int64_t first_ns = 0, last_ns = 0;
};

/// What a process held, looked at again and again over its run. Places are counts of launches. When
/// the room is used up, every second point is left out and the distance doubles: points stay evenly
/// spread over the whole run, whatever its length. A process that is killed meanwhile leaves points
/// that are not in order.
struct SeriesCounters {
  static constexpr std::int64_t kMostPoints = 64;
  static constexpr int kValues = 4;

  struct Point {
    std::int64_t launches = 0, t_ns = 0;
    std::int64_t values[kValues] = {};  ///< -1 where it was not seen
  };

  std::int64_t series = 0;  ///< what the values are: SeriesOf
  std::int64_t distance = 1;
  std::int64_t count = 0;
  Point points[kMostPoints] = {};
};

enum class SeriesOf : std::int64_t {
  process = 1,    ///< anonymous resident bytes, device and host bytes of the driver, descriptors
  allocator = 2,  ///< of PyTorch: allocated bytes, reserved bytes
};

struct Header {
  char magic[8] = {};
  std::uint32_t version = kVersion, header_bytes = 0;
  std::int64_t pid = 0, parent_pid = 0;
  /// When the process began, in clock ticks since boot: with `pid` it names one process for good.
  std::int64_t process_start_ticks = 0;
  std::int64_t wall_ns = 0, monotonic_ns = 0;  ///< both clocks at the same moment
  char host[64] = {};
  State state = State::watching;
  std::uint32_t reserved = 0;
  std::uint64_t committed = 0;  ///< bytes of finished records
  /// Lines for which there was no room, and records of counters.
  std::uint64_t lines_lost = 0, counters_lost = 0;
  std::int64_t end_ns = 0;
  ProcessCounters process;
  char why_off[256] = {};
};
static_assert(sizeof(Header) % 8 == 0);

}  // namespace graphproof::record::probe_file
