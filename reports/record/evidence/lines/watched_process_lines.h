// Evidence of a watched process: what it is, which parts of it were seen, and its messages about
// graphs.
#pragma once

#include "reports/record/evidence/table/field_table.h"

namespace graphproof::record {

struct UnseenPart {
  std::string what;
  std::string why;

  template <class Visitor>
  static void fields(Visitor& field) {
    field("what", &UnseenPart::what, "part that was not seen", "driver_calls", kFilled);
    field("why", &UnseenPart::why, "the reason",
          "another tool has subscribed to CUPTI: CUPTI for Kineto", kFilled);
  }
};

struct LoadedLibrary {
  std::string name;
  std::string path;
  std::int64_t version = 0;

  template <class Visitor>
  static void fields(Visitor& field) {
    field("name", &LoadedLibrary::name, "library", "libnccl", kFilled);
    field("path", &LoadedLibrary::path, "its file",
          "/opt/torch/lib/python3.12/site-packages/nvidia/nccl/lib/libnccl.so.2", kFilled);
    field("version", &LoadedLibrary::version,
          "version that it states, as its own number; 0 if it states none", 22809, kCount);
  }
};

struct WatchedThread {
  std::int64_t thread = 0;
  std::string name;
  std::int64_t kernels = 0;
  std::int64_t kernels_captured = 0;
  std::int64_t graph_launches = 0;
  std::string inside;

  template <class Visitor>
  static void fields(Visitor& field) {
    field("thread", &WatchedThread::thread, "thread id", 4711, kPositive);
    field("name", &WatchedThread::name, "its name", "python3");
    field("kernels", &WatchedThread::kernels, "kernels launched outside graphs and captures", 5000,
          kCount);
    field("kernels_captured", &WatchedThread::kernels_captured, "kernels launched into captures",
          325, kCount);
    field("graph_launches", &WatchedThread::graph_launches, "launches of executable graphs", 100,
          kCount);
    field("inside", &WatchedThread::inside,
          "driver call that it had begun and not ended at the end; empty for none", "");
  }
};

struct WatchedProcessLine {
  static constexpr std::string_view
      kKind = "watched_process",
      kDoc = "The first line: a process that was watched, what was seen of it, and how it ended.";
  std::string host;
  std::int64_t pid = 0;
  std::int64_t parent_pid = 0;
  std::optional<std::int64_t> rank;
  std::optional<std::int64_t> world_size;
  std::vector<std::string> command;
  std::string executable;
  std::string folder;
  std::string profile;
  std::string state;
  std::string why_off;
  std::optional<std::int64_t> exit_status;
  std::optional<bool> pageable_memory_access;
  double start_ms = 0;
  std::int64_t driver_version = 0;
  std::int64_t cupti_version = 0;
  std::string python;
  std::string torch;
  std::map<std::string, std::string> packages;
  std::vector<LoadedLibrary> libraries;
  std::map<std::string, std::string> settings;
  std::vector<UnseenPart> unseen;
  std::int64_t steps = 0;
  std::int64_t captures = 0;
  std::int64_t captures_failed = 0;
  std::int64_t executables = 0;
  std::int64_t executables_live = 0;
  std::int64_t executables_live_most = 0;
  std::int64_t retired_launches = 0;
  std::int64_t device_bytes_most = 0;
  std::optional<std::int64_t> kernels_before_graphs;
  std::optional<bool> launches_ordered;
  std::vector<WatchedThread> threads;
  std::int64_t lines_lost = 0;

  template <class Visitor>
  static void fields(Visitor& field) {
    field("host", &WatchedProcessLine::host, "its machine", "node-1", kFilled);
    field("pid", &WatchedProcessLine::pid, "process id", 4711, kPositive);
    field("parent_pid", &WatchedProcessLine::parent_pid, "process id of its parent", 4700, kCount);
    field("rank", &WatchedProcessLine::rank,
          "rank in the job, from its environment; absent if that has none", 3, kCount);
    field("world_size", &WatchedProcessLine::world_size, "ranks of the job; likewise", 8,
          kPositive);
    field("command", &WatchedProcessLine::command, "command line",
          JsonText{R"(["python3", "train.py"])"});
    field("executable", &WatchedProcessLine::executable, "program file", "/usr/bin/python3.12");
    field("folder", &WatchedProcessLine::folder, "folder that it was started in", "/data");
    field("profile", &WatchedProcessLine::profile, "how much was watched", "quick",
          {.one_of = "quick|full"});
    field("state", &WatchedProcessLine::state,
          "how it ended: by itself, switched off by its probe, or in another way, such as a kill",
          "ended", {.one_of = "ended|switched_off|cut_short"});
    field("why_off", &WatchedProcessLine::why_off,
          "why the probe switched itself off; empty otherwise", "");
    field(
        "exit_status", &WatchedProcessLine::exit_status,
        "what it handed to exit(); absent where a signal or _exit ended it, or where it still ran",
        0);
    field(
        "pageable_memory_access", &WatchedProcessLine::pageable_memory_access,
        "whether every device that it captured on reads pageable memory of the host; absent where "
        "that was not seen",
        true);
    field("start_ms", &WatchedProcessLine::start_ms, "time that the probe took at the start (ms)",
          4.2, kCount);
    field("driver_version", &WatchedProcessLine::driver_version, "CUDA version of the driver",
          13000, kCount);
    field("cupti_version", &WatchedProcessLine::cupti_version, "version of CUPTI; 0 without it",
          130001, kCount);
    field("python", &WatchedProcessLine::python, "version of Python; empty without", "3.12.3");
    field("torch", &WatchedProcessLine::torch, "version of PyTorch; empty without", "2.11.0+cu130");
    field("packages", &WatchedProcessLine::packages,
          "versions of other packages that were imported",
          JsonText{R"({"megatron.core": "0.19.2"})"});
    field("libraries", &WatchedProcessLine::libraries,
          "libraries of CUDA, NCCL, MPI and PyTorch that were loaded");
    field("settings", &WatchedProcessLine::settings,
          "environment variables of CUDA, NCCL, PyTorch and the launcher",
          JsonText{R"({"NCCL_DEBUG": "WARN"})"});
    field("unseen", &WatchedProcessLine::unseen, "what was not seen, and why");
    field("steps", &WatchedProcessLine::steps,
          "training steps, as the optimizers count them; 0 if none was seen", 100, kCount);
    field("captures", &WatchedProcessLine::captures, "captures that began", 3, kCount);
    field("captures_failed", &WatchedProcessLine::captures_failed, "captures that failed", 0,
          kCount);
    field("executables", &WatchedProcessLine::executables, "graphs that were instantiated", 2,
          kCount);
    field("executables_live", &WatchedProcessLine::executables_live,
          "executable graphs alive at the end", 2, kCount);
    field("executables_live_most", &WatchedProcessLine::executables_live_most,
          "most executable graphs alive at once", 2, kCount);
    field("retired_launches", &WatchedProcessLine::retired_launches,
          "launches of destroyed executable graphs that have no line of their own", 0, kCount);
    field("device_bytes_most", &WatchedProcessLine::device_bytes_most,
          "most device memory allocated from the driver at once (bytes)", 8192, kCount);
    field("threads", &WatchedProcessLine::threads, "threads that called the driver");
    field("kernels_before_graphs", &WatchedProcessLine::kernels_before_graphs,
          "of the kernels outside graphs, those before the first launch of a graph; absent without "
          "a launch, and in older evidence",
          120, kCount);
    field("launches_ordered", &WatchedProcessLine::launches_ordered,
          "whether the order of launches on different streams was followed to the end; absent in "
          "older evidence",
          true);
    field("lines_lost", &WatchedProcessLine::lines_lost, "lines that the probe had no room for", 0,
          kCount);
  }
};

struct FailedCallLine {
  static constexpr std::string_view kKind = "failed_call",
                                    kDoc = "A driver call outside captures that failed.";
  std::string function;
  std::int64_t result = 0;
  std::string result_name;
  std::int64_t executable = 0;
  std::int64_t thread = 0;
  std::int64_t step = 0;
  std::vector<std::string> driver_words;

  template <class Visitor>
  static void fields(Visitor& field) {
    field("function", &FailedCallLine::function, "driver call", "cuGraphInstantiateWithFlags",
          kFilled);
    field("result", &FailedCallLine::result, "its error code", 2, kPositive);
    field("result_name", &FailedCallLine::result_name, "name of the code",
          "CUDA_ERROR_OUT_OF_MEMORY", kFilled);
    field("executable", &FailedCallLine::executable, "executable graph of the call; 0 for none", 0,
          kCount);
    field("thread", &FailedCallLine::thread, "thread id", 4711, kPositive);
    field("step", &FailedCallLine::step, "training steps before it", 0, kCount);
    field("driver_words", &FailedCallLine::driver_words, "what the driver logged",
          JsonText{R"(["no memory for the graph"])"});
  }
};

struct GraphMessageLine {
  static constexpr std::string_view kKind = "graph_message",
                                    kDoc = "A log record or warning of the program about graphs.";
  std::string about;
  std::string source;
  std::string text;

  template <class Visitor>
  static void fields(Visitor& field) {
    field("about", &GraphMessageLine::about, "its subject", "skipped",
          {.one_of = "skipped|accumulator|other"});
    field("source", &GraphMessageLine::source, "logger, or the category of the warning",
          "torch._inductor.cudagraph_utils", kFilled);
    field("text", &GraphMessageLine::text, "its text", "skipping cudagraphs due to mutated inputs",
          kFilled);
  }
};

struct GraphCountersLine {
  static constexpr std::string_view
      kKind = "graph_counters",
      kDoc =
          "Counters of libraries that show whether they use graphs, written whenever they changed.";
  std::map<std::string, std::int64_t> counters;

  template <class Visitor>
  static void fields(Visitor& field) {
    field("counters", &GraphCountersLine::counters,
          "counters of Inductor, Dynamo and Megatron; flags are 0 or 1",
          JsonText{R"({"inductor.cudagraph_skips": 2})"});
  }
};

struct ProfilerStartedLine {
  static constexpr std::string_view
      kKind = "profiler_started",
      kDoc = "The program started PyTorch's profiler, which finds CUPTI taken by the probe.";
  std::vector<std::string> stack;

  template <class Visitor>
  static void fields(Visitor& field) {
    field("stack", &ProfilerStartedLine::stack, "Python stack, the innermost call first",
          JsonText{R"(["train.py:41 main"])"});
  }
};

/// The kinds of this file, in the order of the reference page.
using WatchedProcessKinds = Kinds<WatchedProcessLine, FailedCallLine, GraphMessageLine,
                                  GraphCountersLine, ProfilerStartedLine>;

}  // namespace graphproof::record
