#include "reports/record/watched/watched_process.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <optional>
#include <string_view>

namespace graphproof::record {
namespace {

using nlohmann::json;
using probe_file::Contents;

/// The value of `key`, or `otherwise` where it is absent or of another type.
template <class T>
T value_of(const json& object, std::string_view key, T otherwise = {}) {
  const auto found = object.find(key);
  if (found == object.end()) return otherwise;
  if constexpr (std::is_same_v<T, std::string>)
    if (!found->is_string()) return otherwise;
  if constexpr (std::is_same_v<T, bool>)
    if (!found->is_boolean()) return otherwise;
  if constexpr (std::is_same_v<T, std::int64_t>)
    if (!found->is_number_integer()) return otherwise;
  if constexpr (std::is_same_v<T, double>)
    if (!found->is_number()) return otherwise;
  return found->get<T>();
}

/// The list or object under `key`; an empty one where there is none.
const json& list_of(const json& object, std::string_view key) {
  static const json kNone = json::array();
  const auto found = object.find(key);
  return found != object.end() && found->is_array() ? *found : kNone;
}
const json& object_of(const json& object, std::string_view key) {
  static const json kNone = json::object();
  const auto found = object.find(key);
  return found != object.end() && found->is_object() ? *found : kNone;
}
std::int64_t integer(const json& object, std::string_view key) {
  return value_of<std::int64_t>(object, key);
}
std::string text(const json& object, std::string_view key) {
  return value_of<std::string>(object, key);
}
std::vector<std::string> texts(const json& object, std::string_view key) {
  std::vector<std::string> list;
  for (const json& item : list_of(object, key))
    if (item.is_string()) list.push_back(item.get<std::string>());
  return list;
}
std::map<std::string, std::int64_t> counts(const json& object, std::string_view key) {
  std::map<std::string, std::int64_t> map;
  for (const auto& [name, count] : object_of(object, key).items())
    if (count.is_number_integer() || count.is_boolean())
      map[name] = count.is_boolean() ? count.get<bool>() : count.get<std::int64_t>();
  return map;
}
std::optional<std::vector<std::int64_t>> pool_of(const json& object) {
  const auto found = object.find("pool");
  if (found == object.end() || !found->is_array()) return std::nullopt;
  std::vector<std::int64_t> pool;
  for (const json& number : *found)
    if (number.is_number_integer()) pool.push_back(number.get<std::int64_t>());
  return pool;
}

bool has_any(std::string_view text, std::initializer_list<std::string_view> words) {
  return std::ranges::any_of(
      words, [&](std::string_view word) { return text.find(word) != std::string_view::npos; });
}

std::string lower_case(std::string text) {
  for (char& letter : text)
    if (letter >= 'A' && letter <= 'Z') letter = static_cast<char>(letter - 'A' + 'a');
  return text;
}

class Conversion {
 public:
  explicit Conversion(const Contents& from) : from_(from) { into_.dropped = from.dropped; }

  WatchedProcess result() && {
    process();
    for (const probe_file::Line& line : from_.lines) {
      if (line.kind == "failed_call") take<FailedCallLine>(line);
      if (line.kind == "graph_message") message(line.fields);
      if (line.kind == "graph_counters")
        add(GraphCountersLine{.counters = counts(line.fields, "counters")});
      if (line.kind == "profiler_started")
        add(ProfilerStartedLine{.stack = texts(line.fields, "stack")});
      if (line.kind == "capture_begin") capture_begun(line.fields);
      if (line.kind == "capture") capture_ended(line.fields);
      if (line.kind == "python_capture_begin") python_capture_begun(line.fields);
      if (line.kind == "python_capture") python_capture_made(line.fields);
      if (line.kind == "python_capture_failed") python_capture_failed(line.fields);
      if (line.kind == "graph") take<WatchedGraphLine>(line);
      if (line.kind == "graph_order") take<GraphOrderLine>(line);
      if (line.kind == "race") take<GraphRaceLine>(line);
      if (line.kind == "executable") executable(line.fields);
      if (line.kind == "launch_stream")
        streams_[integer(line.fields, "executable")].push_back(text(line.fields, "stream"));
      if (line.kind == "update") update(line);
      if (line.kind == "frozen_number") take<FrozenNumberLine>(line);
      if (line.kind == "device_time") take<DeviceTimeLine>(line);
      if (line.kind == "operands") operands(line);
      if (line.kind == "operand_released") take<OperandReleasedLine>(line);
      if (line.kind == "host_copies") take<HostCopiesLine>(line);
      if (line.kind == "memory") memory(line);
      if (line.kind == "concurrent_launches") concurrent_launches(line);
      if (line.kind == "between_replays") between_replays(line);
      if (line.kind == "communicator") take<CommunicatorLine>(line);
      if (line.kind == "nccl_call") nccl_call(line);
      if (line.kind == "teardown") teardown(line);
    }
    for (auto& [number, capture] : captures_) add(std::move(capture));
    for (const auto& [number, counters] : from_.executables) replays(counters);
    for (const probe_file::SeriesCounters& counters : from_.series) series(counters);
    return std::move(into_);
  }

 private:
  template <class T>
  void add(T line) {
    into_.lines<T>().push_back(std::move(line));
  }
  /// Of a line whose fields have the names and types of the kind. `renamed` changes some.
  template <class T>
  void take(const probe_file::Line& line, const json& renamed = json::object()) {
    json fields = line.fields;
    if (const auto tid = fields.find("tid"); tid != fields.end()) fields["thread"] = *tid;
    fields.update(renamed);
    T typed;
    if (const auto misfit = read_line(fields, typed))
      into_.dropped.push_back("a line of kind " + line.kind + " was left out: " + to_text(*misfit));
    else
      add(std::move(typed));
  }

  double seconds(std::int64_t ns) const {
    return static_cast<double>(ns - from_.header.monotonic_ns) / 1e9;
  }
  std::optional<json> first(std::string_view kind) const {
    const auto lines = from_.of(kind);
    return lines.empty() ? std::nullopt : std::optional(lines.front()->fields);
  }
  std::string thread_name(std::int64_t tid) const {
    for (const auto& thread : from_.threads)
      if (thread.tid == tid) return thread.name;
    return "";
  }

  // The process -------------------------------------------------------------------------------

  void process() {
    const json start = first("process").value_or(json::object());
    const json python = first("python").value_or(json::object());
    const probe_file::Header& header = from_.header;
    const probe_file::ProcessCounters& counted = header.process;
    WatchedProcessLine line{.host = header.host,
                            .pid = header.pid,
                            .parent_pid = header.parent_pid,
                            .command = texts(start, "command"),
                            .executable = text(start, "executable"),
                            .folder = text(start, "folder"),
                            .profile = value_of<std::string>(start, "profile", "quick"),
                            .state = header.state == probe_file::State::ended ? "ended"
                                     : header.state == probe_file::State::switched_off
                                         ? "switched_off"
                                         : "cut_short",
                            .why_off = header.why_off,
                            .start_ms = value_of<double>(start, "start_ms"),
                            .driver_version = integer(start, "driver_version"),
                            .cupti_version = integer(object_of(start, "cupti"), "version"),
                            .python = text(python, "version"),
                            .torch = text(python, "torch"),
                            .steps = counted.steps,
                            .captures = counted.captures,
                            .captures_failed = counted.captures_failed,
                            .executables = counted.executables,
                            .executables_live = counted.executables_live,
                            .executables_live_most = counted.executables_live_most,
                            .retired_launches = counted.retired_launches,
                            .device_bytes_most = counted.device_allocated_bytes_most,
                            .lines_lost = static_cast<std::int64_t>(header.lines_lost)};
    for (const auto& [name, value] : object_of(start, "settings").items())
      if (value.is_string()) line.settings[name] = value.get<std::string>();
    if (const auto launch = first("first_launch")) {
      line.kernels_before_graphs = integer(*launch, "kernels");
      line.launches_ordered =
          value_of<bool>(*launch, "order") && from_.of("launch_order_lost").empty();
    }
    if (const auto exit = first("exit")) line.exit_status = integer(*exit, "status");
    for (const auto* device : from_.of("device"))
      line.pageable_memory_access = line.pageable_memory_access.value_or(true) &&
                                    value_of<bool>(device->fields, "pageable_memory_access");
    line.rank = setting(line, {"RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID"});
    line.world_size = setting(line, {"WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "SLURM_NTASKS"});
    for (const auto* packages : from_.of("packages"))
      for (const auto& [name, version] : object_of(packages->fields, "packages").items())
        if (version.is_string() && name != "torch") line.packages[name] = version;
    for (const auto* library : from_.of("library"))
      line.libraries.push_back({.name = text(library->fields, "name"),
                                .path = text(library->fields, "path"),
                                .version = integer(library->fields, "version")});
    for (const auto& thread : from_.threads)
      line.threads.push_back({.thread = thread.tid,
                              .name = thread.name,
                              .kernels = thread.kernels,
                              .kernels_captured = thread.kernels_captured,
                              .graph_launches = thread.graph_launches,
                              .inside = thread.inside});
    line.unseen = unseen(start, line);
    add(std::move(line));
  }

  /// The number that the first of these variables that is set holds.
  static std::optional<std::int64_t> setting(const WatchedProcessLine& line,
                                             std::initializer_list<const char*> names) {
    for (const char* name : names) {
      const auto found = line.settings.find(name);
      if (found == line.settings.end() || found->second.empty()) continue;
      char* end = nullptr;
      const std::int64_t number = std::strtoll(found->second.c_str(), &end, 10);
      if (*end == '\0') return number;
    }
    return std::nullopt;
  }

  /// Why the time of the device was not measured; empty if it was.
  std::string device_time_missing(const WatchedProcessLine& line) const {
    if (line.executables == 0 || !from_.of("device_time").empty()) return "";
    if (line.profile == "quick") return "only the profile full measures it";
    if (const auto missing = first("device_time_missing")) return text(*missing, "why");
    return "no graph was replayed for long enough to measure";
  }

  /// Launches of graphs that are known by their number alone.
  std::int64_t launches_without_lines(const WatchedProcessLine& line) const {
    const auto made = from_.of("executable");
    if (line.executables <= static_cast<std::int64_t>(made.size())) return 0;
    std::int64_t launches = 0;
    for (const WatchedThread& thread : line.threads) launches += thread.graph_launches;
    for (const auto* one : made) {
      const auto found = from_.executables.find(integer(one->fields, "executable"));
      if (found != from_.executables.end()) launches -= found->second.launches;
    }
    return launches;
  }

  std::vector<UnseenPart> unseen(const json& start, const WatchedProcessLine& line) const {
    std::vector<UnseenPart> parts;
    const auto add = [&](std::string what, std::string why) {
      parts.push_back({.what = std::move(what), .why = std::move(why)});
    };
    if (start.empty()) add("everything", "the process ended while the probe started");
    if (line.state == "switched_off") add("everything after an error of the probe", line.why_off);
    const json& cupti = object_of(start, "cupti");
    if (!value_of<bool>(cupti, "subscribed")) add("driver_calls", text(cupti, "why_not"));
    for (const std::string& call : texts(cupti, "unknown_calls"))
      add(call, "this version of CUPTI does not report it");
    for (const std::string& function : texts(start, "driver_missing"))
      // Only drivers of CUDA 13.2 and newer have it, and the others are read without.
      if (function != "cuGraphNodeGetParams") add(function, "the driver does not have it");
    if (!value_of<bool>(start, "driver_log"))
      add("driver_words", "the driver does not hand out its log; CUDA 12.9 and newer do");
    const bool python = !line.python.empty();
    if (!python) {
      const std::string why = text(start, "python_missing");
      add("python", why.empty() ? "its half of the probe did not start" : why);
      add("blocks_of_the_allocator", "only Python's half of the probe sees them");
    } else if (line.profile == "quick") {
      add("every_freed_block", "the quick profile looks at the allocator now and then");
    }
    if (line.steps == 0)
      add("training_steps", python ? "no optimizer of PyTorch made a step outside a graph"
                                   : "only Python's half of the probe sees them");
    for (const char* kind : {"python_unseen", "part_unseen"})
      for (const auto* part : from_.of(kind))
        add(text(part->fields, "what"), text(part->fields, "why"));
    for (const auto* error : from_.of("python_error"))
      add("python: " + text(error->fields, "where"), text(error->fields, "error"));
    const bool nccl = std::ranges::any_of(
        line.libraries, [](const LoadedLibrary& library) { return library.name == "libnccl"; });
    if (nccl && from_.of("communicator").empty()) {
      const auto plugin = line.settings.find("NCCL_PROFILER_PLUGIN");
      add("nccl_calls", plugin == line.settings.end()
                            ? "NCCL_PROFILER_PLUGIN is not set"
                            : "NCCL made no communicator with the plugin " + plugin->second);
    }
    if (const std::string why_not = device_time_missing(line); !why_not.empty())
      add("device_time", why_not);
    if (line.lines_lost > 0)
      add("lines", std::to_string(line.lines_lost) + " had no room in the file");
    if (from_.header.counters_lost > 0)
      add("lines", std::to_string(from_.header.counters_lost) +
                       " records of counters had no room in the file");
    if (const std::int64_t launches = launches_without_lines(line); launches > 0)
      add("lines", std::to_string(launches) +
                       " launches are of graphs that have none: the process "
                       "made " +
                       std::to_string(line.executables) +
                       " graphs, and beyond the first few hundred only those have lines that are "
                       "launched again and again");
    return parts;
  }

  // Captures ------------------------------------------------------------------------------------

  WatchedCaptureLine& capture(std::int64_t number) {
    WatchedCaptureLine& line = captures_[number];
    line.capture = number;
    return line;
  }

  void capture_begun(const json& fields) {
    WatchedCaptureLine& line = capture(integer(fields, "capture"));
    line.thread = integer(fields, "tid");
    line.stream = text(fields, "stream");
    line.mode = text(fields, "mode");
  }

  void capture_ended(const json& fields) {
    const std::int64_t number = integer(fields, "capture");
    WatchedCaptureLine& line = capture(number);
    line.ended = true;
    line.result = integer(fields, "result");
    line.result_name = text(fields, "result_name");
    line.driver_words = texts(fields, "driver_words");
    if (line.stack.empty()) line.stack = texts(fields, "stack");
    line.thread = integer(fields, "tid");
    line.end_thread = integer(fields, "end_tid");
    line.stream = text(fields, "stream");
    line.mode = text(fields, "mode");
    line.step = integer(fields, "step");
    line.ms = value_of<double>(fields, "ms");
    line.streams = integer(fields, "streams");
    line.work_by_thread = counts(fields, "work_by_thread");
    if (fields.contains("failed_calls_left_out"))
      line.failed_calls_left_out = integer(fields, "failed_calls_left_out");
    line.graph = text(fields, "graph");
    line.nodes = integer(fields, "nodes");
    line.unjoined = counts(fields, "unjoined");
    line.released = integer(fields, "released");
    line.released_bytes = integer(fields, "released_bytes");
    line.collectives = integer(fields, "nccl_calls");
    line.collectives_signature = text(fields, "nccl_signature");
    for (const json& call : list_of(fields, "calls")) {
      const std::int64_t tid = integer(call, "tid");
      add(ForeignCallLine{.capture = number,
                          .function = text(call, "function"),
                          .thread = tid,
                          .thread_name = thread_name(tid),
                          .captures_work = line.work_by_thread.contains(std::to_string(tid)),
                          .result = integer(call, "result"),
                          .count = integer(call, "count")});
    }
    for (const json& host : list_of(fields, "host_functions"))
      add(HostNodeLine{.capture = number,
                       .library = text(host, "library"),
                       .function = text(host, "function"),
                       .count = integer(host, "count")});
    for (const json& copy : list_of(fields, "host_memory"))
      add(HostMemoryLine{.capture = number,
                         .side = text(copy, "side"),
                         .memory = text(copy, "memory"),
                         .address = text(copy, "address"),
                         .bytes = integer(copy, "bytes")});
  }

  /// Without CUPTI only Python numbers the captures.
  WatchedCaptureLine& python_capture(const json& fields) {
    const std::int64_t number = integer(fields, "capture");
    if (number != 0) return capture(number);
    WatchedCaptureLine& line = capture(integer(fields, "number"));
    line.stream = "unknown";
    line.thread = integer(fields, "tid");
    return line;
  }

  void python_capture_begun(const json& fields) {
    WatchedCaptureLine& line = python_capture(fields);
    line.stack = texts(fields, "stack");
    if (line.mode.empty()) line.mode = text(fields, "mode");
    if (!line.pool) line.pool = pool_of(fields);
  }

  void python_capture_made(const json& fields) {
    WatchedCaptureLine& line = python_capture(fields);
    line.stack = texts(fields, "stack");
    line.pool = pool_of(fields);
    line.generators = integer(fields, "generators");
    line.optimizer_steps = integer(fields, "optimizer_steps");
    if (fields.contains("optimizer_numbers"))
      line.optimizer_numbers = integer(fields, "optimizer_numbers");
    line.ended = true;
  }

  void python_capture_failed(const json& fields) {
    // A capture that did not begin has no number.
    if (integer(fields, "capture") == 0 && integer(fields, "number") == 0) return;
    WatchedCaptureLine& line = python_capture(fields);
    line.error = text(fields, "error");
    if (line.stack.empty()) line.stack = texts(fields, "stack");
    line.ended = true;
  }

  // Executable graphs ---------------------------------------------------------------------------

  void executable(const json& fields) {
    const std::int64_t number = integer(fields, "executable");
    const auto counters = from_.executables.find(number);
    ExecutableGraphLine line{
        .executable = number,
        .capture = integer(fields, "capture"),
        .graph = text(fields, "graph"),
        .thread = integer(fields, "tid"),
        .step = integer(fields, "step"),
        .ms = value_of<double>(fields, "ms"),
        .nccl_kernels = integer(fields, "nccl_kernels"),
        .operands = integer(fields, "operands"),
        .destroyed = counters != from_.executables.end() && counters->second.destroyed_ns != 0};
    if (const std::int64_t made_ns = integer(fields, "t_ns")) line.seconds = seconds(made_ns);
    const std::int64_t before = integer(fields, "free_before"),
                       after = integer(fields, "free_after");
    if (after >= 0) line.free_bytes = after;
    if (before >= 0 && after >= 0) line.bytes = before - after;
    add(std::move(line));
  }

  void replays(const probe_file::ExecutableCounters& counters) {
    ReplaysLine line{.executable = counters.executable,
                     .launches = counters.launches,
                     .launches_failed = counters.launches_failed,
                     .uploads = counters.uploads,
                     .kernels_before = counters.kernels_before,
                     .updates = counters.updates,
                     .node_updates = counters.node_updates,
                     .updates_refused = counters.updates_refused,
                     .updates_of_operands = counters.updates_of_operands,
                     .launches_after_free = counters.launches_after_free};
    if (counters.launches_after_another > 0)
      line.launches_after_another = counters.launches_after_another;
    if (const auto streams = streams_.find(counters.executable); streams != streams_.end())
      line.streams = streams->second;
    if (counters.launches > 0) {
      line.first_s = seconds(counters.first_launch_ns);
      line.last_s = seconds(counters.last_launch_ns);
      if (from_.header.process.steps > 0) {
        line.first_step = counters.first_step;
        line.last_step = counters.last_step;
        line.steps = counters.steps;
        if (counters.steps > 0) {
          line.per_step_least = counters.launches_per_step_least;
          line.per_step_most = counters.launches_per_step_most;
        }
      }
    }
    add(std::move(line));
  }

  void update(const probe_file::Line& line) {
    json renamed = {{"operands_read", value_of<bool>(line.fields, "read")}};
    if (const std::int64_t made_ns = integer(line.fields, "t_ns"))
      renamed["seconds"] = seconds(made_ns);
    if (line.fields.contains("host_function"))
      renamed["host_library"] = text(object_of(line.fields, "host_function"), "library");
    take<GraphUpdateLine>(line, renamed);
  }

  // Memory and communication --------------------------------------------------------------------

  void operands(const probe_file::Line& line) {
    json renamed = {{"free_at_capture_blocks", list_of(line.fields, "free_at_capture")}};
    if (line.fields.contains("free_at_capture_blocks"))
      renamed["free_at_capture"] = line.fields["free_at_capture_blocks"];
    take<OperandBlocksLine>(line, renamed);
  }

  void memory(const probe_file::Line& line) {
    take<MemoryPoolsLine>(line, {{"snapshot", integer(line.fields, "snapshots")},
                                 {"seconds", seconds(integer(line.fields, "t_ns"))}});
  }

  void series(const probe_file::SeriesCounters& counters) {
    using Of = probe_file::SeriesOf;
    const std::vector<std::string_view> names =
        counters.series == static_cast<std::int64_t>(Of::process)
            ? std::vector<std::string_view>{"resident", "device", "host", "descriptors"}
        : counters.series == static_cast<std::int64_t>(Of::allocator)
            ? std::vector<std::string_view>{"allocated", "reserved"}
            : std::vector<std::string_view>{};
    const std::int64_t count =
        std::clamp<std::int64_t>(counters.count, 0, probe_file::SeriesCounters::kMostPoints);
    for (std::size_t value = 0; value < names.size(); ++value) {
      MemorySeriesLine line{.what = std::string(names[value])};
      for (std::int64_t index = 0; index < count; ++index) {
        const probe_file::SeriesCounters::Point& point = counters.points[index];
        if (point.values[value] < 0) continue;
        // Out of order where the process was killed while points were left out.
        if (!line.launches.empty() && point.launches <= line.launches.back()) continue;
        line.launches.push_back(point.launches);
        line.seconds.push_back(seconds(point.t_ns));
        line.values.push_back(point.values[value]);
      }
      if (!line.values.empty()) add(std::move(line));
    }
  }

  /// How often what a line describes happened.
  std::int64_t count_of(const probe_file::Line& line) const {
    const auto found = from_.tallies.find(integer(line.fields, "tally"));
    return found != from_.tallies.end() ? found->second.count : 1;
  }

  void concurrent_launches(const probe_file::Line& line) {
    take<ConcurrentLaunchesLine>(
        line, {{"count", count_of(line)}, {"seconds", seconds(integer(line.fields, "t_ns"))}});
  }

  void between_replays(const probe_file::Line& line) {
    take<BetweenReplaysLine>(line, {{"count", count_of(line)}});
  }

  void nccl_call(const probe_file::Line& line) {
    take<NcclCallLine>(line, {{"count", count_of(line)}});
  }

  void teardown(const probe_file::Line& line) {
    take<LiveGraphsLine>(line, {{"seconds", seconds(integer(line.fields, "t_ns"))}});
  }

  void message(const json& fields) {
    GraphMessageLine line{
        .about = "other", .source = text(fields, "source"), .text = text(fields, "text")};
    const std::string lower = lower_case(line.text);
    if (has_any(lower, {"accumulategrad"}))
      line.about = "accumulator";
    else if (has_any(lower, {"skipping", "skipped", "no graphable layers", "falling back"}))
      line.about = "skipped";
    add(std::move(line));
  }

  const Contents& from_;
  WatchedProcess into_;
  std::map<std::int64_t, WatchedCaptureLine> captures_;       // by number
  std::map<std::int64_t, std::vector<std::string>> streams_;  // of launches, by executable graph
};

template <class T>
void append(const std::vector<T>& lines, std::vector<Json>& into) {
  for (const T& line : lines) into.push_back(line_json(line));
}

}  // namespace

std::vector<Json> WatchedProcess::json() const {
  std::vector<Json> all;
  std::apply([&](const auto&... lines) { (append(lines, all), ...); }, typed.lines);
  return all;
}

WatchedProcess watched_process(const probe_file::Contents& contents) {
  return Conversion(contents).result();
}

}  // namespace graphproof::record
