// The processes of a watched command: all descendants of the launcher, whatever session they moved
// to, with what /proc shows of their CPU time and of their use of CUDA.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "launcher/host/processes.h"

namespace graphproof::launcher {

/// The descendants of this process. It is the subreaper of what it starts, so that a process whose
/// parent has ended becomes its child and stays a descendant. Session and mark play no part.
class Descendants : public ProcessTable {
 public:
  std::vector<Process> of(int session, std::string_view mark,
                          std::uint64_t looks_before) const override;
  /// There is no control group whose members could be ended.
  void kill_group(std::string_view) const override {}
};

/// The descendants of `ancestor` among `all`, without itself.
std::vector<Process> descendants_of(int ancestor, const std::vector<Process>& all);

/// The CPU time so far of the threads of `pid` (ms), without the threads in `left_out` and those of
/// NCCL, which poll while they wait.
std::int64_t cpu_ms(int pid, const std::set<std::int64_t>& left_out);

/// When the process began, in clock ticks since boot; 0 where it has ended.
std::int64_t start_ticks(int pid);

/// How a process ended that its parent has not waited for yet, as waitpid() tells it. Nothing for a
/// process that runs, is gone, or began at another time.
std::optional<int> status_of_ended(int pid, std::int64_t began_ticks);

/// The command line of a process, at most 200 bytes of it; its name where it has none.
std::string command_line_of(const Process& process);

/// The words of the command line of a process; empty where it is gone.
std::vector<std::string> words_of(int pid);

/// How a process that left no evidence uses CUDA.
struct CudaUse {
  bool has_driver = false;    ///< has libcuda.so.1 loaded
  bool has_probe = false;     ///< has the probe loaded
  bool has_device = false;    ///< has a device of the driver open
  bool forked = false;        ///< has the file of another process's probe mapped
  bool other_mounts = false;  ///< sees other mounts than the launcher, as in a container
  /// The user that it runs as, where this user may not see what it has loaded.
  std::optional<std::int64_t> other_user;
  std::optional<std::string> injection;  ///< CUDA_INJECTION64_PATH with which it began
  std::optional<std::string> hidden;     ///< of the probe and its folder, what it does not see
};
/// `probe` is the path that the launcher set. REQUIRES: no probe's file in `probe_folder` is of
/// `pid`.
CudaUse cuda_use(int pid, const std::filesystem::path& probe,
                 const std::filesystem::path& probe_folder);

/// The first of `paths` that does not exist in the mount namespace and below the root of `pid`.
/// Nothing if all exist there, or where it cannot be looked at.
std::optional<std::string> hidden_from(int pid, const std::vector<std::filesystem::path>& paths);

/// What keeps a process from leaving evidence.
struct Unwatched {
  std::string why;   ///< empty if nothing is missing
  std::string next;  ///< what makes it watched
};
/// Nothing is missing of a process that did not initialise CUDA or is a forked child, in which CUDA
/// cannot be used. `probe` is the path that the launcher set, `container` the options by which a
/// container gets the probe.
Unwatched why_unwatched(const CudaUse& use, const std::string& probe, const std::string& container);

/// Whether a program that becomes another user, or helps to, is known to use no CUDA itself.
bool uses_no_cuda(const std::string& name);

}  // namespace graphproof::launcher
