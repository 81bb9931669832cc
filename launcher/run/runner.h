// The loop of a run: batches onto slots, contexts to the judge, verdicts into the journal. One
// thread; run.cpp prepares what it works on and writes the reports afterwards.
#pragma once

#include <cstdint>
#include <filesystem>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "launcher/batch/batch_run.h"
#include "launcher/batch/batches.h"
#include "launcher/batch/pending_work.h"
#include "launcher/gpu/cpus.h"
#include "launcher/gpu/gpu_health.h"
#include "launcher/gpu/nvml.h"
#include "launcher/host/host_folders.h"
#include "launcher/host/signals.h"
#include "launcher/run/allocation.h"
#include "launcher/run/judge_pool.h"
#include "launcher/run/run.h"
#include "launcher/run/schedule.h"
#include "reports/print/junit.h"
#include "reports/record/job/live.h"
#include "reports/record/run/journal.h"

namespace graphproof::launcher {

class Runner {
 public:
  /// REQUIRES: the folder is locked and holds run.json and plan.jsonl. `earlier`: the records of an
  /// earlier launcher, and the seconds that it took.
  Runner(const RunSetup& setup, const RunListener& listener,
         const std::vector<record::Record>& earlier, double earlier_seconds);

  /// Runs what is `pending` and returns how it ended. Throws what a fault of graphproof itself
  /// throws; all processes are ended by then.
  reports::Ending run(PendingWork pending);
  double wall_seconds() const;

 private:
  struct Ended {
    record::Context context;
    record::PlanLine line;
  };

  void take(PendingWork pending);
  void end_all();
  void round(std::int64_t now_ms);
  void check_interrupts(std::int64_t now_ms);
  void check_disk(std::int64_t now_ms);
  void check_price(std::int64_t now_ms);
  void disk_full(const std::string& why);
  void start_batches(std::int64_t now_ms);
  void start(const Start& start, std::int64_t now_ms);
  void prestart_batches(std::int64_t now_ms);
  void step_prestarted(std::int64_t now_ms);
  void give_up(std::shared_ptr<RunningBatch> batch, std::int64_t now_ms);
  /// Gives up prestarted batches whose slots or node were lost.
  void give_up_misplaced(std::int64_t now_ms);
  void give_up_prestarted(std::int64_t now_ms);
  void refuse(const std::string& batch, std::int64_t now_ms);
  void step_batches(std::int64_t now_ms);
  void case_ended(record::Context context);
  void case_judged(const JudgePool::Judged& judged, std::int64_t now_ms);
  void keep(const record::Record& record, bool final);
  /// `avoided`: slots where these cases met trouble of the hardware.
  void add(CaseGroup group, const std::vector<Slot>& avoided = {});
  /// True if the case is run again to measure the rate of its failure. `outcome` becomes what is
  /// known by then.
  bool confirm(const Ended& ended, reports::Outcome& outcome);
  int slots_of(const CaseGroup& group) const;
  void add_alone(const record::Record& first, Attempt attempt);
  void look_for_divergence(const record::Record& record, const record::PlanLine& line);
  bool looks_for_divergence(const RunningBatch& batch) const {
    return divergences_.contains(batch.batch().batch);
  }
  void divergence_ended(const std::string& batch);
  void stop_starting(reports::Ending ending);
  void stop_for_failures(const record::Record& record);
  void show(std::int64_t now_ms);
  bool disk_is_low() const;
  bool wants_retry(const record::Record& record);
  /// What a case shows of the GPUs below it: those that are ill or not as before are not leased
  /// again.
  void check_gpus(RunningBatch& batch, const record::Context& context, std::int64_t now_ms);
  void withdraw(const std::vector<Slot>& slots, const std::string& why);
  std::vector<Slot> avoided(const std::string& batch) const;
  /// After trouble of what is below the cases: what the doctor finds, and on GPUs whether these
  /// still sum together. Waits for that, a minute at most.
  void say_what_is_ill(const std::vector<std::string>& gpus) const;
  /// Before the first case. Waits for an all-reduce over the GPUs, where there are several: a
  /// minute at most.
  void look_at_this_host() const;
  BatchRequest request(const CaseGroup& group, const std::string& batch,
                       const std::vector<Slot>& slots) const;
  reports::Progress progress(std::int64_t now_ms) const;
  record::Live live(std::int64_t now_ms) const;
  void say(const std::string& text) const {
    if (listener_.said) listener_.said(text);
  }

  const RunSetup& setup_;
  const RunListener& listener_;
  const ProcessTable host_processes_;
  const ProcessTable& processes_;
  const double earlier_seconds_;
  const std::int64_t started_ms_;
  bool prestart_;
  Signals signals_;
  std::unique_ptr<Nvml> nvml_;
  std::unique_ptr<GpuHealth> gpu_health_;
  std::vector<Cpus> cpus_;  // by slot; empty: nobody is pinned
  Schedule schedule_;
  reports::Junit junit_;
  JudgePool judges_;
  std::unique_ptr<HostFolders> folders_;
  record::JournalWriter journal_;
  std::map<std::string, const record::PlanLine*> line_of_;
  std::map<std::string, CaseGroup> waiting_;  // by batch name
  std::list<std::shared_ptr<RunningBatch>> running_;
  std::map<std::string, std::shared_ptr<RunningBatch>>
      prestarted_;  // warm starts, by batch name; still in waiting_
  std::list<std::shared_ptr<RunningBatch>> given_up_;  // warm starts that are ended
  bool exclusive_process_ = false;
  std::map<std::filesystem::path, Ended> judging_;  // by attempt folder
  struct Divergence {
    record::Record record;
    std::int64_t started_ms = 0;
  };
  std::map<std::string, Divergence> divergences_;  // by batch, until it has ended
  int looked_for_divergence_ = 0;
  std::map<std::string, reports::Outcome> first_outcome_;  // of cases that run again alone
  struct Confirming {
    reports::Outcome first;
    std::vector<reports::Outcome> seen;
  };
  std::map<std::string, Confirming> confirming_;       // failures whose rate is being measured
  std::map<std::string, std::int64_t> started_at_ms_;  // by batch name
  std::int64_t leased_ms_ = 0;  // slots times the time that ended batches held them
  std::map<std::string, record::Record> final_;
  std::map<std::string, int> infra_count_;        // attempts that ended infra.*
  std::optional<reports::Ending> stopped_;        // nothing is started any more
  std::string quarantine_;                        // why slots are not leased any more
  std::map<std::string, std::vector<Slot>> ill_;  // by batch: its slots, if their GPUs met trouble
  std::set<std::string> met_infra_;               // batches on this host whose cases ended infra.*
  int handled_interrupts_ = 0, batch_count_ = 0, skipped_ = 0;
  int failed_ = 0, failed_now_ = 0, final_now_ = 0;  // now: by this launcher
  std::map<std::string, int> alike_;                 // verdict -> final records of this launcher
  double expected_done_ = 0, expected_left_ = 0;
  std::int64_t next_junit_ms_ = 0, progress_ms_ = 0, live_ms_ = 0, disk_ms_ = 0;
};

}  // namespace graphproof::launcher
