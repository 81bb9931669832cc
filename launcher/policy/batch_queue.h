// The groups of cases that wait for slots: their names, and what the schedule gets of them.
// Which starts when is decided by the schedule (schedule.h). Without IO.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "launcher/batch/batches.h"
#include "launcher/policy/schedule.h"
#include "reports/outcome/outcome.h"

namespace graphproof::launcher {

/// The waiting groups of one run, and the schedule that places them.
class BatchQueue {
 public:
  /// `effects` must outlive it. `ranks_per_gpu`: with more than one, a batch with more ranks than
  /// slots shares all slots.
  BatchQueue(Schedule schedule, const reports::CheckEffects& effects, int ranks_per_gpu)
      : schedule_(std::move(schedule)), effects_(effects), ranks_per_gpu_(ranks_per_gpu) {}

  /// Batches are named b001, b002, ... after the `count` that the run has already.
  void number_after(int count) { count_ = count; }

  /// Puts the group into the schedule and returns the name of its batch. `avoided`: slots where
  /// these cases met trouble of the hardware. `may_prestart`: whether ranks may be started before
  /// their turn.
  std::string add(CaseGroup group, const std::vector<Slot>& avoided, bool may_prestart);

  /// REQUIRES: `batch` waits.
  const CaseGroup& group(const std::string& batch) const { return waiting_.at(batch); }
  /// Takes a batch out that the schedule has started or refused. REQUIRES: it waited.
  CaseGroup take(const std::string& batch);
  /// Takes a waiting batch out, also of the schedule.
  void drop(const std::string& batch);
  /// Takes all waiting batches out. Returns their names.
  std::vector<std::string> drop_all();

  bool empty() const { return waiting_.empty(); }
  /// How many slots the group gets.
  int slots_of(const CaseGroup& group) const;
  /// Whether nothing runs beside the group.
  bool exclusive(const CaseGroup& group) const;

  Schedule& schedule() { return schedule_; }
  const Schedule& schedule() const { return schedule_; }

 private:
  Schedule schedule_;
  const reports::CheckEffects& effects_;
  const int ranks_per_gpu_;
  int count_ = 0;
  std::map<std::string, CaseGroup> waiting_;  // by batch
};

}  // namespace graphproof::launcher
