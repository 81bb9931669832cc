// A batch on this host, from its files to its end: starts the ranks, hears them, ends what hangs,
// and hands out a Context for every case that has come to an end. Never waits: step() does what is
// due. What a Context means is decided elsewhere. batch_run.cpp has what happens, batch_context.cpp
// what is reported about it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "launcher/backend/starter_log.h"
#include "launcher/batch/batch_end.h"
#include "launcher/batch/batch_request.h"
#include "launcher/batch/between_cases.h"
#include "launcher/batch/gpu_memory.h"
#include "launcher/batch/gpu_trouble_log.h"
#include "launcher/batch/hang_detector.h"
#include "launcher/batch/hang_inspection.h"
#include "launcher/batch/prestart_wait.h"
#include "launcher/batch/running_batch.h"
#include "launcher/batch/started_ranks.h"
#include "launcher/host/ending.h"
#include "reports/record/job/context.h"
#include "reports/record/job/live.h"

namespace graphproof::launcher {

/// One batch on this host. It must not outlive what its request points to. For one thread.
class BatchRun final : public RunningBatch {
 public:
  // A rank died: mpirun ends the others by itself within this time, or the launcher does.
  static constexpr std::int64_t kStarterLinger_ms = 10000;

  /// Starts the ranks. A start that fails is no exception: it becomes a Context with `infra` for
  /// every case.
  BatchRun(BatchRequest request, std::int64_t now_ms);

  std::vector<record::Context> step(std::int64_t now_ms) override;
  bool over() const override { return stage_ == Stage::over; }
  std::vector<Attempt> not_done() const override;
  std::vector<std::string> unkillable() const override;
  void begin() override { prestart_.begin(); }
  bool prestart_failed() const override { return prestart_.failed(); }
  void stop(std::int64_t now_ms) override;
  void stop_after_case() override;
  const record::Batch& batch() const override { return request_.batch; }
  int starter_pid() const override { return ranks_ ? ranks_->starter_pid() : 0; }
  std::string now_doing() const override;
  record::LiveCase live(std::int64_t now_ms) const override;

  /// Starts the ranks of the next batch on these slots. They wait for begin(), and for the device
  /// until this batch measures nothing any more and the driver tells their memory from its own.
  std::shared_ptr<BatchRun> prestart(BatchRequest next, std::int64_t now_ms);
  /// The prestarted ranks may use the device, because no other batch does.
  void allow_device() { prestart_.allow_device(); }
  const std::vector<std::string>& gpus() const { return request_.job.gpus; }

 private:
  enum class Stage { running, inspecting, ending, freeing_gpus, over };
  /// The end of the processes, once it has begun.
  struct End {
    Ending ending;
    bool by_itself = false;  // the starter ended without being asked to
    std::int64_t stepped_ms = 0;
  };

  std::vector<record::Context> advance(std::int64_t now_ms);
  void wait_for_begin(std::int64_t now_ms);
  void decide(std::int64_t now_ms);
  void inspect(const HangDecision& hang, std::int64_t now_ms);
  void end(bool by_itself, std::int64_t now_ms);
  void free_gpus(std::int64_t now_ms);
  std::vector<record::Context> conclude(std::int64_t now_ms);
  record::Context last_context(std::size_t index, std::int64_t now_ms);
  /// How the starter ended, if it ended without being asked to.
  std::optional<Exit> starter_exit() const;
  std::optional<Culprit> culprit() const;

  void hand_out(const std::vector<BetweenCases::Finished>& cases, std::int64_t now_ms,
                std::vector<record::Context>& finished);
  /// The cases that every rank has ended and that were not handed out, in the order in which they
  /// were begun; without the last one of the batch.
  std::vector<std::size_t> ended_cases() const;
  record::Context context(std::size_t index, std::int64_t now_ms) const;
  record::Cleanup cleanup();
  std::vector<int> successor_pids() const;
  /// Whether the successor may use the device while this batch still runs.
  bool successor_may_use_device() const;

  BatchRequest request_;
  const std::filesystem::path batch_folder_;
  HangDetector detector_;
  PrestartWait prestart_;
  GpuMemory gpu_memory_;
  GpuMemoryWait gpu_memory_wait_;
  GpuTroubleLog gpu_trouble_;
  std::unique_ptr<StartedRanks> ranks_;  // null: they could not be started
  std::optional<BetweenCases> between_cases_;
  std::optional<HangInspection> inspection_;
  std::optional<End> end_;
  std::weak_ptr<BatchRun> successor_;  // prestarted on the same slots
  Stage stage_ = Stage::running;
  std::optional<record::Infra> infra_;  // why the ranks never ran
  bool stopped_ = false;
  std::optional<std::size_t> asked_in_;  // the case in which stop_after_case() was called
  std::vector<bool> finished_;           // by case: its context was handed out
  std::int64_t started_ms_;
};

}  // namespace graphproof::launcher
