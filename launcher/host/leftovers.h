// What the processes of one batch leave on the host: processes, shared memory, semaphores, files,
// listening ports. It looks while the processes run, because only then can the owner of a segment
// of shared memory be told, and it is asked when a case or the batch has ended.
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

/// The leftovers of one batch. Methods that take process ids read /proc of each of them.
class Leftovers {
 public:
  /// Made before the batch is started. Everything given must outlive it. `ports_between_cases`:
  /// whether a listening socket between two cases is a leftover. Ranks have none of their own
  /// there, but NCCL has some for as long as its communicators live.
  Leftovers(const ProcessTable& processes, const PrivateFolder& node_folder,
            const PrivateFolder& shm_folder, bool ports_between_cases);

  /// The batch was started: its session, and the mark of its processes.
  void started(int session, std::string mark);
  /// The count of looks at the process table when the batch began, for ProcessTable::of().
  std::uint64_t looks_before() const { return looks_before_; }
  /// Notes which of these ranks uses what in /dev/shm; cheap while nothing new is there.
  void look(const std::vector<int>& ranks);
  /// Notes the ports on which these processes listen. A process that still listens there when they
  /// are gone has inherited the socket from them.
  void look_at_ports(const std::vector<int>& pids);

  /// What exists between two cases although it belongs to neither mpirun nor a living rank, without
  /// what was reported already.
  record::Cleanup between_cases(const std::vector<int>& ranks);
  /// The part of `found` that still exists.
  record::Cleanup still_there(const record::Cleanup& found) const;
  /// Marks `found` as reported: it is not reported again.
  void report(const record::Cleanup& found);
  void leave_out_reported(record::Cleanup& found) const;

  /// What exists when the last process is gone, except processes and GPU memory. `remove_first`:
  /// the ranks were killed and could not remove it themselves, so only what cannot be removed is
  /// reported. What is reported is removed too, so that the next batch starts clean.
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
  /// Objects of System V that are new since the start, that a rank made or used, and that no living
  /// process uses.
  std::vector<SystemV> forgotten_system_v(const std::vector<int>& living) const;

  std::set<std::string> shm_before_, shm_ours_, system_v_before_;
  std::set<int> ranks_;
  Listeners listeners_seen_;
  record::Cleanup reported_;
};

/// "4711 graphproof-rank-sim", as in record::Cleanup.
std::vector<std::string> named(const std::vector<Process>& processes);

}  // namespace graphproof::launcher
