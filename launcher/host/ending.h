// Ends everything that belongs to a batch: every process of its session or with its mark gets
// SIGTERM, then SIGKILL, and is then waited for. One call of step() does what is due and never
// waits.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "launcher/host/processes.h"

namespace graphproof::launcher {

/// The end of one batch, or of all batches of a run.
class Ending {
 public:
  // mpirun needs about a second to pass a SIGTERM on and to clear its ranks.
  static constexpr std::int64_t kTerm_ms = 2000;
  // A process inside a driver call dies only when the call returns.
  static constexpr std::int64_t kKill_ms = 10000;
  // Ranks whose starter ended by itself are given this long to be gone by themselves.
  static constexpr std::int64_t kSettle_ms = 1000;

  /// Looks which processes are left. `processes` must outlive it. `by_itself`: the batch's starter
  /// has ended without being asked, and what still runs after kSettle_ms was left behind.
  /// `looks_before`: the count of looks when the batch began, for ProcessTable::of().
  Ending(const ProcessTable& processes, int session, std::string mark, bool by_itself,
         std::int64_t now_ms, std::uint64_t looks_before = 0);

  /// True when nothing of the batch runs any more, or the last deadline passed.
  bool step(std::int64_t now_ms);

  /// The processes that ran at the last look.
  const std::vector<Process>& left() const { return left_; }
  /// Processes that outlived a starter which ended by itself. They were ended all the same.
  const std::vector<Process>& left_behind() const { return left_behind_; }
  /// Processes that even SIGKILL did not end in time.
  const std::vector<Process>& unkillable() const { return unkillable_; }
  /// The strongest signal that was sent; 0 if none was needed.
  int signal() const { return signal_; }

 private:
  enum class Stage { settle, ask, term, kill, done };

  void send(const std::vector<Process>& processes, int signal) const;

  const ProcessTable& processes_;
  int session_;
  std::string mark_;
  std::uint64_t looks_before_;
  Stage stage_;
  std::int64_t deadline_ms_;
  int signal_ = 0;
  bool looked_ = true;  // a look reads all of /proc: the first step needs none
  std::vector<Process> left_, left_behind_, unkillable_;
};

}  // namespace graphproof::launcher
