// The host's process table: which processes run, in which session, with which mark in their
// environment. Linux /proc only; a process that vanishes while it is read is left out.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "launcher/host/cgroup.h"

namespace graphproof::launcher {

/// Every process of a batch has this variable in its environment (RUN_ID.BATCH), so that one which
/// left its session is still found.
inline constexpr char kMarkVariable[] = "GRAPHPROOF_MARK";

/// A process as /proc shows it.
struct Process {
  int pid = 0;
  int parent = 0;
  int session = 0;
  char state = '?';     // as in /proc/PID/stat; Z is a zombie, which no longer runs
  bool kernel = false;  // a thread of the kernel's, which has no environment
  std::string command;
};

/// The content of a file of /proc, up to where reading fails: a process may end between open and
/// read (ESRCH), which a standard stream's buffer turns into an exception. Empty when there is no
/// such file.
std::string proc_text(const std::string& path);

/// The process, if it runs. A zombie does not run, although `kill -0` succeeds for it.
std::optional<Process> running_process(int pid);

/// How long the threads of a process that runs could run and had no processor, added up, in ms. 0
/// where the kernel does not tell (/proc/PID/schedstat).
std::int64_t queued_ms(int pid);

/// All processes that run, without zombies.
std::vector<Process> running_processes();

/// The looks at the process table so far, and in which of them each process was first seen. A
/// process that was seen before a batch began does not belong to it: a mark is given at a process's
/// start, and no session can be joined. So a look for the batch reads only newer processes, and not
/// all of the host's.
struct Looks {
  /// A process as the looks know it.
  struct Seen {
    ino_t folder;  // of /proc/PID: another one when the number was given out again
    std::uint64_t look;
  };
  std::uint64_t count = 0;
  std::unordered_map<int, Seen> first;
};

/// Running processes of `session` (0: of none), with `mark` in their environment, or in its control
/// group (below `groups`); never the caller. A mark that ends with a dot stands for all that begin
/// with it: "RUN_ID." is every batch of a run. Process groups do not help, because mpirun gives
/// every rank one of its own. `looks`, if given, is counted on, and processes that were seen in its
/// first `before` looks are left out.
std::vector<Process> processes_of(int session, std::string_view mark, Looks* looks = nullptr,
                                  std::uint64_t before = 0,
                                  const std::filesystem::path& groups = cgroup_parent());

/// The host's processes, for the parts that end what a batch started. Tests derive from it to have
/// a process that can't be ended.
class ProcessTable {
 public:
  virtual ~ProcessTable() = default;
  /// The count of looks so far. A batch keeps it when it begins, for of().
  std::uint64_t looks() const { return looks_.count; }
  /// processes_of() for a batch that began after this many looks; 0: at any time.
  virtual std::vector<Process> of(int session, std::string_view mark,
                                  std::uint64_t looks_before) const;
  virtual void send(int pid, int signal) const;
  /// Cgroup::make().
  std::unique_ptr<Cgroup> make_group(const std::string& mark) const {
    return Cgroup::make(mark, groups_);
  }
  /// Sends SIGKILL to all processes in the mark's control group at once, where there is one.
  virtual void kill_group(std::string_view mark) const;

 private:
  mutable Looks looks_;  // not thread-safe: a launcher and an agent have one thread
  const std::filesystem::path groups_ = cgroup_parent();
};

/// Waits for children of this process that have ended and are not in `known`. These are orphans of
/// a batch: the launcher is their subreaper.
void reap_orphans(const std::vector<int>& known);

/// The files below /dev/shm that `pid` has mapped or open.
std::vector<std::string> shm_in_use(int pid);

/// Where the open descriptors of `pid` lead: paths, "socket:[4711]" and the like.
std::vector<std::string> open_files(int pid);

}  // namespace graphproof::launcher
