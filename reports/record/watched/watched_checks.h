// checks.json of a watched run: what the judge found in the evidence of all its processes. The
// judge writes it into the folder of the run; the launcher prints it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reports/record/evidence/table/field_table.h"
#include "reports/record/run/checks.h"

namespace graphproof::record {

inline constexpr std::string_view kWatchedChecksSchema = "graphproof-watched-checks/1";
/// Its name in the folder of the run.
inline constexpr std::string_view kWatchedChecksFile = "checks.json";

/// Kernels of one name in a graph.
struct KernelCount {
  std::string kernel;
  std::int64_t count = 0;

  bool operator==(const KernelCount&) const = default;

  template <class Visitor>
  static void fields(Visitor& field) {
    field("kernel", &KernelCount::kernel, "name of the kernel", "ncclDevKernel_AllReduce", kFilled);
    field("count", &KernelCount::count, "its nodes", 4, kPositive);
  }
};

/// What a thread does outside graphs before it replays one.
struct BetweenReplays {
  std::string what;
  std::string name;
  double per_replay = 0;

  bool operator==(const BetweenReplays&) const = default;

  template <class Visitor>
  static void fields(Visitor& field) {
    field("what", &BetweenReplays::what,
          "a kernel, a driver call that copies or fills, or one that waits for the device",
          "kernel", {.one_of = "kernel|copy|wait"});
    field("name", &BetweenReplays::name, "name of the kernel or of the driver call", "scale",
          kFilled);
    field("per_replay", &BetweenReplays::per_replay, "times before a replay, on average", 2.5,
          kCount);
  }
};

/// One executable graph of one process: a row of the table of graphs. What was not seen is absent.
struct GraphRow {
  std::string process;
  std::optional<std::int64_t> rank;
  std::int64_t executable = 0;
  std::string signature;
  std::string captured_at;
  std::vector<std::string> stack;
  std::string thread;
  std::string stream;
  std::map<std::string, std::int64_t> nodes;
  std::vector<KernelCount> kernels;
  std::optional<std::int64_t> pool_bytes;
  std::optional<std::int64_t> instantiation_bytes;
  std::int64_t replays = 0;
  std::optional<std::int64_t> replays_per_step_least;
  std::optional<std::int64_t> replays_per_step_most;
  std::optional<double> launch_share;
  std::optional<double> device_time_share;
  std::optional<double> kernels_between;
  std::optional<std::vector<BetweenReplays>> between;

  bool operator==(const GraphRow&) const = default;

  template <class Visitor>
  static void fields(Visitor& field) {
    field("process", &GraphRow::process, "name of the probe's file, without the ending",
          "node1.4711", kFilled);
    field("rank", &GraphRow::rank, "rank of the process, if it has one", 0, kCount);
    field("executable", &GraphRow::executable,
          "number of the executable graph in its process, from 1", 1, kPositive);
    field("signature", &GraphRow::signature,
          "digest over its nodes; empty if the graph was not read", "5566778899aabbcc",
          kDigestOrEmpty);
    field("captured_at", &GraphRow::captured_at,
          "innermost line of the user's program in the stack of the capture; empty if no stack "
          "was seen",
          "train.py:42 train_step");
    field("stack", &GraphRow::stack, "stack of the capture, innermost first",
          JsonText{R"(["train.py:42 train_step", "train.py:60 main"])"});
    field("thread", &GraphRow::thread, "thread that captured it", "python3 (4711)");
    field("stream", &GraphRow::stream, "stream of the capture", "0x55d0c0de");
    field("nodes", &GraphRow::nodes, "its nodes by kind",
          JsonText{R"({"kernel": 120, "memcpy": 2})"}, kCount);
    field("kernels", &GraphRow::kernels, "its most frequent kernels, the most frequent first");
    field("pool_bytes", &GraphRow::pool_bytes, "size of its memory pool (bytes)", 6291456, kCount);
    field("instantiation_bytes", &GraphRow::instantiation_bytes,
          "device memory that the instantiation took (bytes)", 1048576);
    field("replays", &GraphRow::replays, "its launches", 100, kCount);
    field("replays_per_step_least", &GraphRow::replays_per_step_least,
          "fewest launches in one training step", 1, kCount);
    field("replays_per_step_most", &GraphRow::replays_per_step_most,
          "most launches in one training step", 1, kCount);
    field("launch_share", &GraphRow::launch_share,
          "its share (0 to 1) of all kernels that the process launched, in graphs or outside", 0.8,
          kCount);
    field("device_time_share", &GraphRow::device_time_share,
          "its share (0 to 1) of the device time of the process; only in the profile full", 0.7,
          kCount);
    field("kernels_between", &GraphRow::kernels_between,
          "kernels that its thread launched outside graphs between its replay of any graph before "
          "and a replay of this one, on average; absent where no replay has one before",
          12.5, kCount);
    field("between", &GraphRow::between,
          "what its thread does outside graphs between them; the most frequent first; absent where "
          "nothing was seen");
  }
};

/// A process that did not come to a good end.
struct FailedProcess {
  std::string process;
  std::string host;
  std::optional<std::int64_t> rank;
  std::optional<std::int64_t> exit_status;

  bool operator==(const FailedProcess&) const = default;

  template <class Visitor>
  static void fields(Visitor& field) {
    field("process", &FailedProcess::process, "name of the probe's file, without the ending",
          "node2.4711", kFilled);
    field("host", &FailedProcess::host, "its machine", "node2", kFilled);
    field("rank", &FailedProcess::rank, "rank of the process, if it has one", 3, kCount);
    field("exit_status", &FailedProcess::exit_status,
          "what it handed to exit(); absent where a signal or _exit ended it", 1);
  }
};

/// Everything that the judge found in a watched run. The message of a check names the process
/// where `rank` does not.
struct WatchedChecks {
  std::vector<CheckResult> checks;
  std::vector<GraphRow> graphs;
  std::map<std::string, double> figures;  ///< graph_share, ...
  std::vector<std::string> notes;         ///< what was not seen and why, one sentence each
  /// Those with an exit status other than 0; where there is none, those without any.
  std::vector<FailedProcess> failed_processes;

  bool operator==(const WatchedChecks&) const = default;
};

Json to_json(const WatchedChecks& checks);
/// Throws ReadError that names `where`.
WatchedChecks watched_checks_from(const nlohmann::json& value, const std::string& where);

}  // namespace graphproof::record
