// What the processes of one batch leave on the host: processes, shared memory, semaphores, files,
// listening ports. Looks while they run, because only then can be told whose a segment of shared
// memory is; is asked when a case or the batch has ended.
#pragma once

#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "launcher/host/listeners.h"
#include "launcher/host/private_folder.h"
#include "launcher/host/processes.h"
#include "launcher/host/system_v.h"
#include "reports/record/job/context.h"

namespace graphproof::launcher {

class Leftovers {
 public:
  /// Before the batch is started. Everything given must outlive it. `ports_between_cases`: ranks
  /// have no listening socket of their own between two cases; NCCL's do, for as long as its
  /// communicators live.
  Leftovers(const ProcessTable& processes, const PrivateFolder& node_folder,
            const PrivateFolder& shm_folder, bool ports_between_cases);

  /// The batch was started: its session, and the mark of its processes.
  void started(int session, std::string mark);
  /// When: of ProcessTable::of().
  std::uint64_t looks_before() const { return looks_before_; }
  /// Whose is what in /dev/shm; cheap while nothing new is there.
  void look(const std::vector<int>& ranks);
  /// The ports on which these listen: whoever still does when they are gone has them from them.
  void look_at_ports(const std::vector<int>& pids);

  /// What is there between two cases although it belongs to neither mpirun nor a living rank; what
  /// was reported by then is left out.
  record::Cleanup between_cases(const std::vector<int>& ranks);
  /// What of `found` is still there.
  record::Cleanup still_there(const record::Cleanup& found) const;
  /// Not to be reported again.
  void report(const record::Cleanup& found);
  void leave_out_reported(record::Cleanup& found) const;

  /// When the last process is gone: everything but processes and GPU memory. `remove_first`: the
  /// ranks were killed and could not remove it, so only what will not go is reported. What is
  /// reported is removed too: the next batch starts clean.
  record::Cleanup after_batch(bool remove_first);

 private:
  bool is_new(const std::string& shm) const { return !shm_before_.contains(shm); }

  const ProcessTable& processes_;
  const PrivateFolder& node_folder_;
  const PrivateFolder& shm_folder_;
  const bool ports_between_cases_;
  const std::uint64_t looks_before_;
  int session_ = 0;
  std::string mark_;
  /// Of System V: what is new since the start and was made or used by a rank, and is used by no
  /// living one.
  std::vector<SystemV> forgotten_system_v(const std::vector<int>& living) const;

  std::set<std::string> shm_before_, shm_ours_, system_v_before_;
  std::set<int> ranks_;
  Listeners listeners_seen_;
  record::Cleanup reported_;
};

/// "4711 graphproof-rank-sim", as in record::Cleanup.
std::vector<std::string> named(const std::vector<Process>& processes);

}  // namespace graphproof::launcher
