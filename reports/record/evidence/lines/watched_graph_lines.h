// Evidence of the captures, graphs and replays of a watched process.
#pragma once

#include "reports/record/evidence/table/field_table.h"

namespace graphproof::record {

struct WatchedCaptureLine {
  static constexpr std::string_view kKind = "watched_capture",
                                    kDoc = "A capture: where it was made, and its result.";
  std::int64_t capture = 0;
  bool ended = false;
  std::int64_t result = 0;
  std::string result_name;
  std::string error;
  std::vector<std::string> driver_words;
  std::vector<std::string> stack;
  std::int64_t thread = 0;
  std::int64_t end_thread = 0;
  std::string stream;
  std::string mode;
  std::int64_t step = 0;
  double ms = 0;
  std::optional<std::vector<std::int64_t>> pool;
  std::optional<std::int64_t> generators;
  std::optional<std::int64_t> optimizer_steps;
  std::optional<std::int64_t> optimizer_numbers;
  std::int64_t streams = 0;
  std::map<std::string, std::int64_t> work_by_thread;
  std::optional<std::int64_t> failed_calls_left_out;
  std::string graph;
  std::int64_t nodes = 0;
  std::map<std::string, std::int64_t> unjoined;
  std::int64_t released = 0;
  std::int64_t released_bytes = 0;
  std::int64_t collectives = 0;
  std::string collectives_signature;

  template <class Visitor>
  static void fields(Visitor& field) {
    field("capture", &WatchedCaptureLine::capture, "number of the capture in its process, from 1",
          1, kPositive);
    field("ended", &WatchedCaptureLine::ended, "whether its end was seen", true);
    field("result", &WatchedCaptureLine::result, "error code of its end; 0 for success", 0, kCount);
    field("result_name", &WatchedCaptureLine::result_name,
          "name of the code; empty where the end was not seen", "CUDA_SUCCESS");
    field("error", &WatchedCaptureLine::error, "what PyTorch raised; empty for nothing", "");
    field("driver_words", &WatchedCaptureLine::driver_words,
          "what the driver logged of refused calls", JsonText{R"([])"});
    field("stack", &WatchedCaptureLine::stack,
          "Python stack of its beginning, the innermost call first; empty where there is none",
          JsonText{R"(["train.py:41 main"])"});
    field("thread", &WatchedCaptureLine::thread, "thread that began it", 4711, kPositive);
    field("end_thread", &WatchedCaptureLine::end_thread,
          "thread that ended it; 0 where the end was not seen", 4711, kCount);
    field("stream", &WatchedCaptureLine::stream, "origin stream", "0x55d0c0ffee00", kFilled);
    field("mode", &WatchedCaptureLine::mode, "capture mode", "global",
          {.one_of = "global|thread_local|relaxed|unknown"});
    field("step", &WatchedCaptureLine::step, "training steps before its end", 0, kCount);
    field("ms", &WatchedCaptureLine::ms,
          "time from its beginning to its end (ms); 0 where the end was not seen", 41.5, kCount);
    field("pool", &WatchedCaptureLine::pool,
          "PyTorch's graph pool; absent where PyTorch did not make the capture",
          JsonText{R"([0, 9])"}, kCount);
    field("generators", &WatchedCaptureLine::generators,
          "random generators registered with the graph; likewise", 1, kCount);
    field("optimizer_steps", &WatchedCaptureLine::optimizer_steps,
          "steps of PyTorch's optimizers that were captured; likewise", 0, kCount);
    field("optimizer_numbers", &WatchedCaptureLine::optimizer_numbers,
          "numbers of the host that these steps took, such as the learning rate; also absent in "
          "older evidence",
          0, kCount);
    field("streams", &WatchedCaptureLine::streams, "streams that took part", 2, kCount);
    field("work_by_thread", &WatchedCaptureLine::work_by_thread,
          "calls that captured work, by thread", JsonText{R"({"4711": 325})"});
    field("failed_calls_left_out", &WatchedCaptureLine::failed_calls_left_out,
          "failed calls during it for which there was no room; absent in older evidence", 0,
          kCount);
    field("graph", &WatchedCaptureLine::graph, "signature of the graph; empty without one",
          "5566778899aabbcc", kDigestOrEmpty);
    field("nodes", &WatchedCaptureLine::nodes, "nodes of the graph, nested ones included", 325,
          kCount);
    field("unjoined", &WatchedCaptureLine::unjoined,
          "work that the end of the graph does not wait for, by name", JsonText{R"({})"});
    field("released", &WatchedCaptureLine::released,
          "memory ranges given back to the driver during the capture", 0, kCount);
    field("released_bytes", &WatchedCaptureLine::released_bytes, "their sum (bytes)", 0, kCount);
    field("collectives", &WatchedCaptureLine::collectives, "calls of NCCL that it captured", 4,
          kCount);
    field("collectives_signature", &WatchedCaptureLine::collectives_signature,
          "digest of these calls in order; empty for none", "0b1c2d3e4f506172", kDigestOrEmpty);
  }
};

struct ForeignCallLine {
  static constexpr std::string_view
      kKind = "foreign_call",
      kDoc = "A driver call of another thread during a capture, or one that a capture refused.";
  std::int64_t capture = 0;
  std::string function;
  std::int64_t thread = 0;
  std::string thread_name;
  bool captures_work = false;
  std::int64_t result = 0;
  std::int64_t count = 0;

  template <class Visitor>
  static void fields(Visitor& field) {
    field("capture", &ForeignCallLine::capture, "number of the capture", 1, kPositive);
    field("function", &ForeignCallLine::function, "driver call", "cuMemHostAlloc", kFilled);
    field("thread", &ForeignCallLine::thread, "thread id", 4712, kPositive);
    field("thread_name", &ForeignCallLine::thread_name, "its name", "pt_pinned");
    field("captures_work", &ForeignCallLine::captures_work,
          "whether this thread also captured work", false);
    field("result", &ForeignCallLine::result, "error code; 0 for success", 900, kCount);
    field("count", &ForeignCallLine::count, "how often", 1, kPositive);
  }
};

struct ShapedKernel {
  std::string name;
  std::int64_t count = 0;
  std::vector<std::int64_t> shape;
  std::int64_t shared_bytes = 0;

  template <class Visitor>
  static void fields(Visitor& field) {
    field("name", &ShapedKernel::name, "name, as the compiler mangled it",
          "ncclDevKernel_AllReduce_Sum_f32_RING_LL", kFilled);
    field("count", &ShapedKernel::count, "nodes of this kernel and shape", 4, kPositive);
    field("shape", &ShapedKernel::shape, "grid and block: six numbers",
          JsonText{R"([2, 1, 1, 64, 1, 1])"});
    field("shared_bytes", &ShapedKernel::shared_bytes, "dynamic shared memory (bytes)", 0, kCount);
  }
};

struct WatchedGraphLine {
  static constexpr std::string_view kKind = "watched_graph",
                                    kDoc = "The nodes of graphs with one signature.";
  std::string signature;
  std::int64_t total = 0;
  std::map<std::string, std::int64_t> nodes;
  std::int64_t kernel_nodes = 0;
  std::int64_t nccl_kernels = 0;
  std::int64_t copied_bytes = 0;
  std::vector<ShapedKernel> kernels;
  std::int64_t kernels_left_out = 0;
  std::int64_t without_layout = 0;
  std::int64_t without_parameters = 0;
  std::int64_t maybe_tensor_map = 0;
  std::int64_t conditional_bodies_unknown = 0;
  std::string failure;

  template <class Visitor>
  static void fields(Visitor& field) {
    field("signature", &WatchedGraphLine::signature,
          "digest of types, names and launch shapes in order", "5566778899aabbcc", kDigest);
    field("total", &WatchedGraphLine::total, "nodes, nested ones included", 325, kCount);
    field("nodes", &WatchedGraphLine::nodes, "nodes by kind",
          JsonText{R"({"kernel": 324, "memcpy": 1})"});
    field("kernel_nodes", &WatchedGraphLine::kernel_nodes, "kernels", 324, kCount);
    field("nccl_kernels", &WatchedGraphLine::nccl_kernels, "kernels of NCCL among them", 4, kCount);
    field("copied_bytes", &WatchedGraphLine::copied_bytes,
          "bytes that its copies move within device memory", 4096, kCount);
    field("kernels", &WatchedGraphLine::kernels,
          "kernels by name and launch shape, the most frequent first");
    field("kernels_left_out", &WatchedGraphLine::kernels_left_out,
          "names and shapes that are not listed", 0, kCount);
    field("without_layout", &WatchedGraphLine::without_layout,
          "kernels whose parameters cannot be read: the driver knows no layout", 0, kCount);
    field("without_parameters", &WatchedGraphLine::without_parameters,
          "kernels whose parameters cannot be read: the node has none", 0, kCount);
    field("maybe_tensor_map", &WatchedGraphLine::maybe_tensor_map,
          "kernels with a parameter that can hold tensor maps, in which addresses are not seen", 0,
          kCount);
    field("conditional_bodies_unknown", &WatchedGraphLine::conditional_bodies_unknown,
          "conditional nodes whose bodies were not seen", 0, kCount);
    field("failure", &WatchedGraphLine::failure,
          "driver call that ended the reading early; empty for none", "");
  }
};

struct GraphOrderLine {
  static constexpr std::string_view kKind = "graph_order",
                                    kDoc = "Which nodes of a graph may run at the same time.";
  std::int64_t capture = 0;
  std::string graph;
  bool known = false;
  std::int64_t writes = 0;
  std::int64_t concurrent_writes = 0;
  std::int64_t not_looked_at = 0;
  std::int64_t possible_races = 0;

  template <class Visitor>
  static void fields(Visitor& field) {
    field("capture", &GraphOrderLine::capture, "capture; 0 for a graph built by hand", 1, kCount);
    field("graph", &GraphOrderLine::graph, "signature", "5566778899aabbcc", kDigest);
    field("known", &GraphOrderLine::known, "whether the driver told its edges", true);
    field("writes", &GraphOrderLine::writes,
          "copies and fills of which it is known what they write", 4, kCount);
    field("concurrent_writes", &GraphOrderLine::concurrent_writes,
          "of these, those that other nodes may run at the same time as", 1, kCount);
    field("not_looked_at", &GraphOrderLine::not_looked_at,
          "of the writes, for want of time, or because nodes wait for what is no edge", 0, kCount);
    field("possible_races", &GraphOrderLine::possible_races,
          "kernels at the same time with a pointer into what is written, of which it was not known "
          "yet whether they use that part",
          0, kCount);
  }
};

struct GraphRaceLine {
  static constexpr std::string_view
      kKind = "graph_race",
      kDoc =
          "Two nodes of a graph that no path joins and that use the same memory, which one writes.";
  std::int64_t capture = 0;
  std::string graph;
  std::string write;
  std::string address;
  std::int64_t bytes = 0;
  std::string other;
  std::string other_place;
  std::string other_address;
  std::int64_t other_bytes = 0;

  template <class Visitor>
  static void fields(Visitor& field) {
    field("capture", &GraphRaceLine::capture, "capture; 0 for a graph built by hand", 1, kCount);
    field("graph", &GraphRaceLine::graph, "signature", "5566778899aabbcc", kDigest);
    field("write", &GraphRaceLine::write, "the copy or fill that writes", "memcpy", kFilled);
    field("address", &GraphRaceLine::address, "where it begins to write", "0x7f0000000200",
          kFilled);
    field("bytes", &GraphRaceLine::bytes, "what it writes (bytes)", 4096, kCount);
    field("other", &GraphRaceLine::other, "kernel, copy or fill that uses the memory too", "scale",
          kFilled);
    field("other_place", &GraphRaceLine::other_place, "where in that node the address is",
          "parameter",
          {.one_of = "copy_source|copy_target|fill_target|allocation|parameter|field"});
    field("other_address", &GraphRaceLine::other_address, "the address", "0x7f0000000200", kFilled);
    field("other_bytes", &GraphRaceLine::other_bytes,
          "what it uses from there (bytes); 0 for the pointer of a kernel", 0, kCount);
  }
};

struct HostNodeLine {
  static constexpr std::string_view
      kKind = "host_node",
      kDoc = "Host functions of a captured graph that belong to one library.";
  std::int64_t capture = 0;
  std::string library;
  std::string function;
  std::int64_t count = 0;

  template <class Visitor>
  static void fields(Visitor& field) {
    field("capture", &HostNodeLine::capture, "number of the capture", 1, kPositive);
    field("library", &HostNodeLine::library, "file that holds the function; empty where none does",
          "/opt/nccl/lib/libnccl.so.2");
    field("function", &HostNodeLine::function,
          "exported name nearest to it; empty where there is none", "");
    field("count", &HostNodeLine::count, "nodes", 2, kPositive);
  }
};

struct HostMemoryLine {
  static constexpr std::string_view kKind = "host_memory",
                                    kDoc =
                                        "A copy in a captured graph from or to memory of the host.";
  std::int64_t capture = 0;
  std::string side;
  std::string memory;
  std::string address;
  std::int64_t bytes = 0;

  template <class Visitor>
  static void fields(Visitor& field) {
    field("capture", &HostMemoryLine::capture, "number of the capture", 1, kPositive);
    field("side", &HostMemoryLine::side, "side of the copy that is on the host", "source",
          {.one_of = "source|target"});
    field("memory", &HostMemoryLine::memory, "kind of memory", "pageable",
          {.one_of = "pageable|pinned|registered|managed|unknown"});
    field("address", &HostMemoryLine::address, "where it begins", "0x7f0000000200", kFilled);
    field("bytes", &HostMemoryLine::bytes, "bytes that are copied", 256, kCount);
  }
};

struct ExecutableGraphLine {
  static constexpr std::string_view kKind = "executable_graph",
                                    kDoc = "A graph that was instantiated.";
  std::int64_t executable = 0;
  std::int64_t capture = 0;
  std::string graph;
  std::int64_t thread = 0;
  std::int64_t step = 0;
  double ms = 0;
  std::optional<std::int64_t> bytes;
  std::optional<std::int64_t> free_bytes;
  std::int64_t nccl_kernels = 0;
  std::int64_t operands = 0;
  bool destroyed = false;
  std::optional<double> seconds;

  template <class Visitor>
  static void fields(Visitor& field) {
    field("executable", &ExecutableGraphLine::executable,
          "number of the executable graph in its process, from 1", 1, kPositive);
    field("capture", &ExecutableGraphLine::capture,
          "capture that it was made from; 0 for a graph built by hand", 1, kCount);
    field("graph", &ExecutableGraphLine::graph, "signature", "5566778899aabbcc", kDigest);
    field("thread", &ExecutableGraphLine::thread, "thread that instantiated it", 4711, kPositive);
    field("step", &ExecutableGraphLine::step, "training steps before", 0, kCount);
    field("ms", &ExecutableGraphLine::ms, "time that it took (ms)", 3.5, kCount);
    field("bytes", &ExecutableGraphLine::bytes,
          "device memory that was free before and not after (bytes); absent where it could not be "
          "asked",
          1048576);
    field("free_bytes", &ExecutableGraphLine::free_bytes,
          "free device memory after (bytes); likewise", std::int64_t{85898288896}, kCount);
    field("nccl_kernels", &ExecutableGraphLine::nccl_kernels, "kernels of NCCL", 4, kCount);
    field("operands", &ExecutableGraphLine::operands,
          "words of its parameters that point into memory of the process", 640, kCount);
    field("destroyed", &ExecutableGraphLine::destroyed, "whether it was destroyed before the end",
          false);
    field("seconds", &ExecutableGraphLine::seconds,
          "when it was instantiated (s from the start of the probe)", 11.5, kCount);
  }
};

struct ReplaysLine {
  static constexpr std::string_view
      kKind = "replays",
      kDoc = "How often an executable graph was launched and updated, over the whole run.";
  std::int64_t executable = 0;
  std::int64_t launches = 0;
  std::int64_t launches_failed = 0;
  std::int64_t uploads = 0;
  std::optional<std::int64_t> first_step;
  std::optional<std::int64_t> last_step;
  std::optional<std::int64_t> steps;
  std::optional<std::int64_t> per_step_least;
  std::optional<std::int64_t> per_step_most;
  std::optional<double> first_s;
  std::optional<double> last_s;
  std::int64_t kernels_before = 0;
  std::optional<std::int64_t> launches_after_another;
  std::int64_t updates = 0;
  std::int64_t node_updates = 0;
  std::int64_t updates_refused = 0;
  std::int64_t updates_of_operands = 0;
  std::int64_t launches_after_free = 0;
  std::optional<std::vector<std::string>> streams;

  template <class Visitor>
  static void fields(Visitor& field) {
    field("executable", &ReplaysLine::executable, "number of the executable graph", 1, kPositive);
    field("launches", &ReplaysLine::launches, "launches", 100, kCount);
    field("launches_failed", &ReplaysLine::launches_failed, "launches that the driver refused", 0,
          kCount);
    field("uploads", &ReplaysLine::uploads, "uploads", 0, kCount);
    field("first_step", &ReplaysLine::first_step,
          "training steps before the first launch; absent where no step or no launch was seen", 3,
          kCount);
    field("last_step", &ReplaysLine::last_step, "training steps before the last launch; likewise",
          99, kCount);
    field("steps", &ReplaysLine::steps, "training steps with launches that ended; likewise", 96,
          kCount);
    field("per_step_least", &ReplaysLine::per_step_least,
          "fewest launches in one of them; absent where there is none", 1, kCount);
    field("per_step_most", &ReplaysLine::per_step_most, "most launches in one of them; likewise", 1,
          kCount);
    field("first_s", &ReplaysLine::first_s,
          "first launch (s from the start of the probe); absent without launches", 12.5, kCount);
    field("last_s", &ReplaysLine::last_s, "last launch (s from the start of the probe); likewise",
          60.1, kCount);
    field("kernels_before", &ReplaysLine::kernels_before,
          "kernels that the launching threads started outside graphs since their previous graph "
          "launch, summed over the launches that have one before",
          50, kCount);
    field(
        "launches_after_another", &ReplaysLine::launches_after_another,
        "launches by a thread that had launched a graph before; absent where there is none or the "
        "probe did not count them",
        99, kPositive);
    field("updates", &ReplaysLine::updates, "updates from another graph", 0, kCount);
    field("node_updates", &ReplaysLine::node_updates, "updates of single nodes", 0, kCount);
    field("updates_refused", &ReplaysLine::updates_refused, "updates that the driver refused", 0,
          kCount);
    field("updates_of_operands", &ReplaysLine::updates_of_operands,
          "updates after which it points to other memory", 0, kCount);
    field("launches_after_free", &ReplaysLine::launches_after_free,
          "launches that began after memory of an operand was given back to the driver", 0, kCount);
    field("streams", &ReplaysLine::streams,
          "streams of its launches, the first eight; absent where they were not seen",
          JsonText{R"(["0x55d0c0ffee00"])"});
  }
};

struct BetweenReplaysLine {
  static constexpr std::string_view kKind = "between_replays",
                                    kDoc =
                                        "What the launching threads did outside graphs between "
                                        "their launch of a graph before and the launches of this "
                                        "one, over the whole run.";
  std::int64_t executable = 0;
  std::string what;
  std::string name;
  std::int64_t count = 0;

  template <class Visitor>
  static void fields(Visitor& field) {
    field("executable", &BetweenReplaysLine::executable,
          "number of the executable graph; 0 for what is not told apart", 1, kCount);
    field("what", &BetweenReplaysLine::what,
          "a kernel, a call that copies or fills, or one that waits for the device; other for what "
          "is not told apart",
          "kernel", {.one_of = "kernel|copy|wait|other"});
    field("name", &BetweenReplaysLine::name,
          "name of the kernel in its object code, or of the driver call; empty for other",
          "vectorized_elementwise_kernel");
    field("count", &BetweenReplaysLine::count, "times", 300, kCount);
  }
};

struct GraphUpdateLine {
  static constexpr std::string_view
      kKind = "graph_update",
      kDoc = "An update of an executable graph. Of equal updates only the first few have a line.";
  std::int64_t executable = 0;
  std::string function;
  std::int64_t result = 0;
  std::string result_name;
  std::optional<std::int64_t> update_result;
  bool operands_moved = false;
  bool operands_read = false;
  std::optional<bool> operands_kept;
  std::optional<std::string> host_library;
  std::int64_t step = 0;
  std::vector<std::string> driver_words;
  std::optional<double> seconds;
  std::optional<std::int64_t> launches;
  std::optional<std::int64_t> clusters, kept_clusters;
  std::optional<std::string> kept_kernel;

  template <class Visitor>
  static void fields(Visitor& field) {
    field("executable", &GraphUpdateLine::executable, "number of the executable graph", 1,
          kPositive);
    field("function", &GraphUpdateLine::function, "driver call", "cuGraphExecUpdate_v2", kFilled);
    field("result", &GraphUpdateLine::result, "error code; 0 for success", 0, kCount);
    field("result_name", &GraphUpdateLine::result_name, "name of the code", "CUDA_SUCCESS",
          kFilled);
    field("update_result", &GraphUpdateLine::update_result,
          "CUgraphExecUpdateResult of a whole update", 0, kCount);
    field("operands_moved", &GraphUpdateLine::operands_moved,
          "whether the graph points to other memory now", false);
    field("operands_read", &GraphUpdateLine::operands_read, "whether its operands were read again",
          true);
    field("operands_kept", &GraphUpdateLine::operands_kept,
          "whether such an update leaves the operands as they are: it was refused, or the node was "
          "enabled, or has another event or host function; absent in older evidence",
          false);
    field(
        "host_library", &GraphUpdateLine::host_library,
        "file that holds the new function of a host node, empty where none does; absent for other "
        "updates",
        "/opt/nccl/lib/libnccl.so.2");
    field("step", &GraphUpdateLine::step, "training steps before", 12, kCount);
    field("driver_words", &GraphUpdateLine::driver_words, "what the driver logged",
          JsonText{R"([])"});
    field("seconds", &GraphUpdateLine::seconds, "when (s from the start of the probe)", 20.5,
          kCount);
    field("launches", &GraphUpdateLine::launches, "launches of the graph before", 12, kCount);
    field("clusters", &GraphUpdateLine::clusters,
          "kernels of the executable graph that ran in thread block clusters before; of whole "
          "updates, and absent in older evidence",
          2, kCount);
    field(
        "kept_clusters", &GraphUpdateLine::kept_clusters,
        "kernels that run in the clusters of the kernels before, though their own launches ask for "
        "none, as far as the operands were read again",
        0, kCount);
    field("kept_kernel", &GraphUpdateLine::kept_kernel,
          "the first such kernel, by its name in its object code; absent where there is none",
          "nvjet_sm90_tst_64x8_64x16_1x1_h_bz_TNT");
  }
};

struct FrozenNumberLine {
  static constexpr std::string_view
      kKind = "frozen_number",
      kDoc =
          "A number of an optimizer that the host changed after its step was captured, before a "
          "replay of the graph.";
  std::int64_t capture = 0;
  std::string optimizer;
  std::int64_t group = 0;
  std::string name;
  std::string captured;
  std::string now;
  std::int64_t replays = 0;

  template <class Visitor>
  static void fields(Visitor& field) {
    field("capture", &FrozenNumberLine::capture, "number of the capture", 1, kPositive);
    field("optimizer", &FrozenNumberLine::optimizer, "class of the optimizer", "SGD", kFilled);
    field("group", &FrozenNumberLine::group, "index of the group of parameters", 0, kCount);
    field("name", &FrozenNumberLine::name, "its name there", "lr", kFilled);
    field("captured", &FrozenNumberLine::captured, "its value at the capture", "0.1", kFilled);
    field("now", &FrozenNumberLine::now, "its value before the replay", "0.05", kFilled);
    field("replays", &FrozenNumberLine::replays, "replays of the graph before", 12, kCount);
  }
};

struct GraphDeviceTime {
  std::int64_t executable = 0;
  std::int64_t launches = 0;
  std::int64_t ns = 0;

  template <class Visitor>
  static void fields(Visitor& field) {
    field("executable", &GraphDeviceTime::executable, "number of the executable graph", 1,
          kPositive);
    field("launches", &GraphDeviceTime::launches, "its launches in the window", 3, kPositive);
    field("ns", &GraphDeviceTime::ns, "from its first to its last node, summed (ns)", 2100000,
          kCount);
  }
};

struct DeviceTimeLine {
  static constexpr std::string_view
      kKind = "device_time",
      kDoc =
          "Time of the device in a window of a few steps, by CUPTI's activity records. Work that "
          "runs at the same time counts more than once.";
  double seconds = 0;
  std::int64_t steps = 0;
  std::int64_t launches = 0;
  std::int64_t records = 0;
  std::int64_t dropped = 0;
  std::int64_t without_times = 0;
  std::int64_t graph_ns = 0;
  std::int64_t unknown_graph_ns = 0;
  std::int64_t kernels = 0;
  std::int64_t kernel_ns = 0;
  std::int64_t copy_ns = 0;
  std::int64_t fill_ns = 0;
  std::vector<GraphDeviceTime> graphs;

  std::int64_t all_ns() const { return graph_ns + kernel_ns + copy_ns + fill_ns; }

  template <class Visitor>
  static void fields(Visitor& field) {
    field("seconds", &DeviceTimeLine::seconds, "length of the window (s)", 0.03, kCount);
    field("steps", &DeviceTimeLine::steps, "training steps in it; 0 where none are counted", 3,
          kCount);
    field("launches", &DeviceTimeLine::launches, "launches of graphs in it", 6, kCount);
    field("records", &DeviceTimeLine::records, "activity records", 606, kCount);
    field("dropped", &DeviceTimeLine::dropped, "records that CUPTI had no room for", 0, kCount);
    field("without_times", &DeviceTimeLine::without_times, "records without times", 0, kCount);
    field("graph_ns", &DeviceTimeLine::graph_ns, "time of graphs (ns)", 4200000, kCount);
    field("unknown_graph_ns", &DeviceTimeLine::unknown_graph_ns,
          "of it, of launches that the probe did not see (ns)", 0, kCount);
    field("kernels", &DeviceTimeLine::kernels, "kernels outside graphs", 600, kCount);
    field("kernel_ns", &DeviceTimeLine::kernel_ns, "their time (ns)", 1500000, kCount);
    field("copy_ns", &DeviceTimeLine::copy_ns, "time of copies outside graphs (ns)", 60000, kCount);
    field("fill_ns", &DeviceTimeLine::fill_ns, "time of fills outside graphs (ns)", 3000, kCount);
    field("graphs", &DeviceTimeLine::graphs, "each executable graph, the longest first");
  }
};

/// The kinds of this file, in the order of the reference page.
using WatchedGraphKinds =
    Kinds<WatchedCaptureLine, ForeignCallLine, WatchedGraphLine, GraphOrderLine, GraphRaceLine,
          HostNodeLine, HostMemoryLine, ExecutableGraphLine, ReplaysLine, BetweenReplaysLine,
          GraphUpdateLine, FrozenNumberLine, DeviceTimeLine>;

}  // namespace graphproof::record
