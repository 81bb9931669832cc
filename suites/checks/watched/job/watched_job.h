// A watched run as its checks see it: how the command ended, and the evidence of each process. A
// run has no axes: what a check expects follows from the evidence alone. suites/judge reads the
// files.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "matrix/catalogue/bad_stacks.h"
#include "reports/record/watched/watched_process.h"
#include "reports/record/watched/watched_run.h"

namespace graphproof::checks::watched {

/// The evidence of one process.
struct JobProcess {
  std::string name;  // of its probe's file, without the ending
  record::WatchedProcess evidence;

  const record::WatchedProcessLine& line() const { return evidence.process(); }
  template <record::LineKind T>
  std::span<const T> of() const {
    return evidence.of<T>();
  }
  /// "rank 1 (node-1.4711)", or "process node-1.4711" if it has no rank.
  std::string title() const;
  /// Whether it began a capture or instantiated a graph.
  bool has_graphs() const;
  /// Kernels that its threads launched outside graphs and captures.
  std::int64_t eager_kernels() const;
  /// Launches of executable graphs by its threads.
  std::int64_t graph_launches() const;
  /// The driver call in which a thread of it was when something ended the process; empty if it
  /// ended by itself or in no call.
  std::string stopped_inside() const;
  /// Why `part` of it was not seen (UnseenPart::what); nothing if it was seen. A part is also
  /// unseen if nothing was seen, or if lines of any kind were lost.
  std::optional<std::string> unseen(std::string_view part) const;
  /// Why its driver calls were not seen, so that its graphs are not known; nothing if they were.
  std::optional<std::string> calls_unseen() const;
  /// The value of an environment variable; empty if it is not set.
  std::string setting(std::string_view name) const;
  /// The version that a loaded library states, as its own number; 0 if none is known.
  std::int64_t library_version(std::string_view name) const;
};

/// An executable graph with everything that is known of it. The pointers refer to the lines of its
/// process; those after `made` are null where there is no such line.
struct Executable {
  const record::ExecutableGraphLine* made = nullptr;
  const record::WatchedCaptureLine* capture = nullptr;
  const record::WatchedGraphLine* graph = nullptr;
  const record::ReplaysLine* replays = nullptr;

  std::int64_t number() const { return made->executable; }
  std::int64_t launches() const { return replays ? replays->launches : 0; }
  std::int64_t kernels() const { return graph ? graph->kernel_nodes : 0; }
  /// Whether it has kernels of NCCL, or its capture has calls of NCCL.
  bool communicates() const;
  /// "graph 3, captured at train.py:41 main"
  std::string title() const;
  /// Why it is not known what it holds; empty if it is.
  std::string nodes_unread() const;
  /// Why it is not known which memory it points to; empty if it is, besides addresses in tensor
  /// maps and in device memory.
  std::string operands_unread() const;
};

/// In the order of their numbers.
std::vector<Executable> executables(const JobProcess& process);

/// The executable graph that was launched with the work of this capture: it was made of it, or, if
/// none was made of it, it was updated as a whole, for which such captures are. Null if none was.
const Executable* launched_with(const JobProcess& process, const std::vector<Executable>& all,
                                std::int64_t capture);

/// Why it is not known what an executable graph points to since an update; empty if it is, or if it
/// was not launched since.
std::string unread_update(const JobProcess& process, const Executable& one);

/// The innermost line of a stack that belongs to the user's program: not to PyTorch, to Python's
/// own library or to the probe. The innermost line of all if there is no other; empty for an empty
/// stack.
std::string program_line(const std::vector<std::string>& stack);
/// ", captured at train.py:41 main"; empty for an empty stack.
std::string captured_at(const record::WatchedCaptureLine& capture);

/// Everything that a check of a watched run may read.
struct WatchedJob {
  record::WatchedRun run;
  std::vector<JobProcess> processes;
  matrix::BadStackTable bad_stacks;
  /// Files of processes that could not be read, one sentence each. No check passes then.
  std::vector<std::string> unread;
  std::vector<std::string> notes;
};

/// A rank that ended without its exit handlers before it made a graph, although other ranks have
/// graphs: "rank 1 (node-1.4712)". Empty if there is none. Of several processes of one rank, the
/// one that launched most counts.
std::string rank_lost_early(const WatchedJob& job);

/// The process of each rank, in the order of ranks. Processes that never launched anything are left
/// out: launchers and compile workers have the variables of a rank too. Of several processes of one
/// rank, the one that launched most.
std::vector<const JobProcess*> ranks(const WatchedJob& job);

}  // namespace graphproof::checks::watched
