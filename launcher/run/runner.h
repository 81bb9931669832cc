// The loop of a run: batches go onto slots, the contexts of their cases to the judge, verdicts into
// the journal. One thread. What is decided, is decided by its parts, which do no IO: the schedule,
// case_policy.h, gpu_quarantine.h, spending.h, interrupts.h. run.cpp prepares what the loop works
// on and writes the reports afterwards.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "launcher/batch/batch_host.h"
#include "launcher/host/disk_floor.h"
#include "launcher/host/signals.h"
#include "launcher/policy/batch_queue.h"
#include "launcher/policy/case_policy.h"
#include "launcher/policy/divergence_searches.h"
#include "launcher/policy/gpu_quarantine.h"
#include "launcher/policy/interrupts.h"
#include "launcher/policy/spending.h"
#include "launcher/policy/warm_starts.h"
#include "launcher/run/allocation.h"
#include "launcher/run/judge_pool.h"
#include "launcher/run/pending_work.h"
#include "launcher/run/recorder.h"
#include "launcher/run/run.h"
#include "launcher/run/run_status.h"

namespace graphproof::launcher {

/// One launcher's part of a run.
class Runner {
 public:
  /// REQUIRES: the folder is locked and holds run.json and plan.jsonl. `earlier`: the records of an
  /// earlier launcher of this run; `earlier_seconds`: how long it took.
  Runner(const RunSetup& setup, const RunListener& listener,
         const std::vector<record::Record>& earlier, double earlier_seconds);

  /// Runs what is `pending` and returns how the run ended. An exception is a fault of graphproof
  /// itself; all processes are ended by then.
  reports::Ending run(PendingWork pending);
  double wall_seconds() const;

 private:
  void take(PendingWork pending);
  void round(std::int64_t now_ms);
  void check_bounds(std::int64_t now_ms);
  /// Whether a case is not yet begun.
  bool cases_wait() const;

  void add(CaseGroup group, const std::vector<Slot>& avoided = {});
  void start_batches(std::int64_t now_ms);
  void start(const Start& start, std::int64_t now_ms);
  void prestart(const Start& start, std::int64_t now_ms);
  void refuse(const std::string& batch);

  void step_batches(std::int64_t now_ms);
  void step_warm_starts(std::int64_t now_ms);
  void step(RunningBatch& batch, std::int64_t now_ms);
  /// Frees the slots of a batch that is over, or whose ranks ended before their turn, and puts its
  /// cases that did not run back into the queue.
  void release(RunningBatch& batch, std::int64_t now_ms);

  void case_ended(record::Context context);
  void case_judged(const JudgePool::Judged& judged, std::int64_t now_ms);
  RunStanding standing(const record::PlanLine& line, const record::Context& context) const;
  void run_again(const JudgedAttempt& attempt, const CaseDecision& decision);
  /// No further case runs in these processes.
  void end_batch(RunningBatch& batch, std::int64_t now_ms);

  void end_run(const RunEnd& end);
  void disk_full(const std::string& why);
  void end_all_processes();
  void log(const std::string& message) const;

  const RunSetup& setup_;
  const RunListener& listener_;
  RunStatus status_;
  Signals signals_;
  BatchHost host_;
  BatchQueue queue_;
  JudgePool judges_;
  Recorder recorder_;
  RunningBatches running_;
  WarmStarts warm_starts_;
  GpuQuarantine quarantine_;
  DivergenceSearches searches_;
  Spending spending_;
  DiskFloor disk_floor_;
  Interrupts interrupts_;
  std::map<std::filesystem::path, record::Context> judging_;  // by attempt folder
  std::map<std::string, CaseHistory> histories_;              // by case
  RunStanding standing_;                                      // what all cases have in common
  std::optional<reports::Ending> ending_;                     // no case is started any more
};

}  // namespace graphproof::launcher
