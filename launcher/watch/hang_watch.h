// Decides whether a watched command has stopped making progress. It does no IO: it is given what
// each process did and the time.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>

namespace graphproof::launcher {

/// What one process of the command did up to a look.
struct ProcessActivity {
  std::string name;
  bool watched = false;        ///< a probe writes evidence of it
  bool on_this_host = true;    ///< otherwise only its evidence is seen
  std::uint64_t evidence = 0;  ///< digest of its probe's file; any change is progress
  /// CPU time so far of its threads that are not inside a driver call (ms). A thread that waits
  /// for the GPU inside a driver call spins, so its CPU time is no progress.
  std::int64_t cpu_ms = 0;
  bool inside_call = false;  ///< whether a thread of it is inside a driver call
  bool stopped = false;      ///< by a debugger or SIGSTOP
};

/// The command hangs when for `hang_after_ms` no probe's file changed, no process came or went, no
/// process used more than kIdleShare of a core outside driver calls, and none was stopped by a
/// debugger, while a process that CUDA runs in is there. A command without such a process, such as
/// a job that waits in a queue, never counts as hanging. Nor do processes of other hosts of which
/// none is inside a driver call, because their CPU time is not seen.
class HangWatch {
 public:
  // Threads that wait wake up now and then: torchrun polls its workers ten times a second.
  static constexpr double kIdleShare = 0.05;
  // Linux counts CPU time in ticks of 10 ms.
  static constexpr std::int64_t kIdle_ms = 20;

  HangWatch(std::int64_t hang_after_ms, std::int64_t now_ms)
      : hang_after_ms_(hang_after_ms), looked_ms_(now_ms), progress_ms_(now_ms) {}

  /// True when the command hangs.
  bool look(std::int64_t now_ms, std::span<const ProcessActivity> processes);
  /// How long nothing has moved.
  std::int64_t still_ms(std::int64_t now_ms) const { return now_ms - progress_ms_; }

 private:
  const std::int64_t hang_after_ms_;
  std::int64_t looked_ms_, progress_ms_;
  std::map<std::string, ProcessActivity> before_;
};

}  // namespace graphproof::launcher
