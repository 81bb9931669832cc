// What the host's process table says: who lives, in which session, with which environment mark. Linux /proc only; a
// process that vanishes while it is read is left out.
#pragma once

#include <chrono>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace graphproof::launcher {

/// Every process of a batch carries this variable (RUN_ID.BATCH), so that one which left its session is still found.
inline constexpr char kMarkVariable[] = "GRAPHPROOF_MARK";

struct Process {
  int pid = 0;
  int parent = 0;
  int session = 0;
  char state = '?';  // as in /proc/PID/stat; Z is a zombie, which no longer runs
  bool kernel = false;  // a thread of the kernel's, which has no environment
  std::string command;
};

/// What /proc says in this file, up to where reading fails: a process may end between open and read (ESRCH), which a
/// standard stream's buffer turns into an exception. Empty when there is no such file.
std::string proc_text(const std::string& path);

/// Null when no such process runs. A zombie does not run: `kill -0` would say that it does.
std::optional<Process> running_process(int pid);

/// All that run, zombies left out.
std::vector<Process> running_processes();

/// The numbers of the kernel's threads as they were a second ago at most, so that whoever looks often need not look at what is
/// most of an idle host's processes. A number is given out again only when all others were: 32,768 at least in that second.
struct KernelThreads {
  std::set<int> pids;
  std::chrono::steady_clock::time_point since;
};

/// Running processes of `session` (0: of none), with `mark` in their environment, or in its control group; never the caller. A mark that ends
/// with a dot stands for all that begin with it: "RUN_ID." is every batch of a run. Process groups are no help: mpirun
/// gives every rank one of its own. `kernel`: kept up to date, if given.
std::vector<Process> processes_of(int session, std::string_view mark, KernelThreads* kernel = nullptr);

/// The host's processes, as those see them who end what a batch started. Tests derive from it to have a process that
/// can't be ended.
class ProcessTable {
 public:
  virtual ~ProcessTable() = default;
  /// processes_of().
  virtual std::vector<Process> of(int session, std::string_view mark) const;
  virtual void send(int pid, int signal) const;
  /// SIGKILL to all in the mark's control group at once, where there is one.
  virtual void kill_group(std::string_view mark) const;

 private:
  mutable KernelThreads kernel_;  // not thread-safe: a launcher and an agent have one thread
};

/// Waits for children of this process that ended and are not in `known`: orphans of a batch, which came to us because
/// the launcher is their subreaper.
void reap_orphans(const std::vector<int>& known);

/// The files below /dev/shm that `pid` has mapped or open.
std::vector<std::string> shm_in_use(int pid);

/// Where the open descriptors of `pid` lead: paths, "socket:[4711]" and the like.
std::vector<std::string> open_files(int pid);

}  // namespace graphproof::launcher
