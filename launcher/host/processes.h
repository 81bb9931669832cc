// What the host's process table says: who lives, in which session, with which environment mark.
// Linux /proc only; a process that vanishes while it is read is left out.
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

/// Every process of a batch carries this variable (RUN_ID.BATCH), so that one which left its
/// session is still found.
inline constexpr char kMarkVariable[] = "GRAPHPROOF_MARK";

struct Process {
  int pid = 0;
  int parent = 0;
  int session = 0;
  char state = '?';     // as in /proc/PID/stat; Z is a zombie, which no longer runs
  bool kernel = false;  // a thread of the kernel's, which has no environment
  std::string command;
};

/// What /proc says in this file, up to where reading fails: a process may end between open and read
/// (ESRCH), which a standard stream's buffer turns into an exception. Empty when there is no such
/// file.
std::string proc_text(const std::string& path);

/// Null when no such process runs. A zombie does not run: `kill -0` would say that it does.
std::optional<Process> running_process(int pid);

/// All that run, zombies left out.
std::vector<Process> running_processes();

/// The looks at the process table so far, and in which of them each process was first seen. Whoever
/// was seen before a batch began is none of its processes: a mark is given at a process's start,
/// and no session can be joined. So a look for the batch reads only what is newer, and not all of a
/// host's processes.
struct Looks {
  struct Seen {
    ino_t folder;  // of /proc/PID: another one when the number was given out again
    std::uint64_t look;
  };
  std::uint64_t count = 0;
  std::unordered_map<int, Seen> first;
};

/// Running processes of `session` (0: of none), with `mark` in their environment, or in its control
/// group (below `groups`); never the caller. A mark that ends with a dot stands for all that begin
/// with it: "RUN_ID." is every batch of a run. Process groups are no help: mpirun gives every rank
/// one of its own. `looks`: counted on, if given; who was seen in the first `before` of them is
/// left out.
std::vector<Process> processes_of(int session, std::string_view mark, Looks* looks = nullptr,
                                  std::uint64_t before = 0,
                                  const std::filesystem::path& groups = cgroup_parent());

/// The host's processes, as those see them who end what a batch started. Tests derive from it to
/// have a process that can't be ended.
class ProcessTable {
 public:
  virtual ~ProcessTable() = default;
  /// The looks so far: when a batch begins, what to give to of() for it.
  std::uint64_t looks() const { return looks_.count; }
  /// processes_of() a batch that began after so many looks; 0: no matter when.
  virtual std::vector<Process> of(int session, std::string_view mark,
                                  std::uint64_t looks_before) const;
  virtual void send(int pid, int signal) const;
  /// Cgroup::make().
  std::unique_ptr<Cgroup> make_group(const std::string& mark) const {
    return Cgroup::make(mark, groups_);
  }
  /// SIGKILL to all in the mark's control group at once, where there is one.
  virtual void kill_group(std::string_view mark) const;

 private:
  mutable Looks looks_;  // not thread-safe: a launcher and an agent have one thread
  const std::filesystem::path groups_ = cgroup_parent();
};

/// Waits for children of this process that ended and are not in `known`: orphans of a batch, which
/// came to us because the launcher is their subreaper.
void reap_orphans(const std::vector<int>& known);

/// The files below /dev/shm that `pid` has mapped or open.
std::vector<std::string> shm_in_use(int pid);

/// Where the open descriptors of `pid` lead: paths, "socket:[4711]" and the like.
std::vector<std::string> open_files(int pid);

}  // namespace graphproof::launcher
