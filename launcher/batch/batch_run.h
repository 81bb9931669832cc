// One batch from its files to its end: starts the ranks, listens, watches, ends what hangs, and
// hands out a Context for every case that has come to an end. Never waits: step() does what is due.
// What a Context means is decided elsewhere. batch_run.cpp has what happens, batch_context.cpp what
// is told of it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "launcher/backend/local_command.h"
#include "launcher/backend/starter_log.h"
#include "launcher/batch/batches.h"
#include "launcher/batch/hang_detector.h"
#include "launcher/batch/heartbeat_pipe.h"
#include "launcher/batch/running_batch.h"
#include "launcher/gpu/flight_data.h"
#include "launcher/gpu/gpu_health.h"
#include "launcher/gpu/nccl_ras.h"
#include "launcher/gpu/nvml.h"
#include "launcher/host/cgroup.h"
#include "launcher/host/child.h"
#include "launcher/host/ending.h"
#include "launcher/host/leftovers.h"
#include "launcher/host/private_folder.h"
#include "launcher/host/processes.h"
#include "launcher/host/stacks.h"
#include "reports/record/job/batch.h"
#include "reports/record/job/context.h"
#include "reports/record/job/live.h"

namespace graphproof::launcher {

struct BatchRequest {
  record::Batch batch;  // heartbeat_fifo, store, log_folder and mark are filled in by BatchRun
  std::vector<Attempt> attempts;          // of batch.cases, in the same order
  std::vector<record::Limits> limits_ms;  // of the same, every phase
  Job job;  // batch_file, mark, node_folder and shm_folder are filled in
  std::filesystem::path run_folder;
  std::filesystem::path node_folder, shm_folder;  // of the run; each batch gets a folder in both
  const Nvml* nvml = nullptr;                     // null: not measured
  GpuHealth* gpu_health = nullptr;                // null: nobody tells what goes wrong with GPUs
  const ProcessTable* processes = nullptr;
  std::optional<record::Infra> refused;  // why it is not even started: each case then ends infra.*
  std::string launcher = "local";        // that the contexts name
  bool prestarted = false;               // warm start: its ranks are started and wait for begin()
  std::string predecessor;  // the batch that runs on its slots until then; "" unless prestarted
  std::vector<GpuUse>
      clean_gpus;  // its GPUs without anything of ours; empty: looked at before the start
};

/// What is known of a case before its ranks were heard: the request's part of its context.
record::Context context_of(const BatchRequest& request, std::size_t index);

class BatchRun final : public RunningBatch {
 public:
  // A rank died: mpirun ends the others by itself within this time, or we do.
  static constexpr std::int64_t kStarterLinger_ms = 10000;
  // The driver frees a dead process's memory a moment later.
  static constexpr std::int64_t kGpuSettle_ms = 3000;
  // A context that others keep on the GPU breathes; a leak of ours is larger.
  static constexpr std::int64_t kGpuNoise_bytes = 64 << 20;

  /// Writes batches/B/{batch.json,command,env}, makes the FIFO and starts the ranks. A start that
  /// fails is no exception: it becomes a Context with `infra` for every case.
  BatchRun(BatchRequest request, std::int64_t now_ms);

  /// Reads heartbeats, looks at processes, decides, ends.
  std::vector<record::Context> step(std::int64_t now_ms) override;
  bool over() const override { return stage_ == Stage::over; }
  std::vector<Attempt> not_done() const override;
  std::vector<std::string> unkillable() const override {
    return ending_ ? named(ending_->unkillable()) : std::vector<std::string>();
  }
  void stop(std::int64_t now_ms) override;
  void stop_after_case() override;
  const record::Batch& batch() const override { return request_.batch; }
  int starter_pid() const override { return child_ ? child_->pid() : 0; }
  std::string now_doing() const override;
  record::LiveCase live(std::int64_t now_ms) const override;

  /// Starts the ranks of the next batch on these slots, which wait: for the device, until nothing
  /// of this one is measured any more and its memory is told from theirs, and for begin(). Their
  /// memory is not this one's.
  std::shared_ptr<BatchRun> prestart(BatchRequest next, std::int64_t now_ms);
  /// The prestarted ranks may use the device; no other process does.
  void allow_device() { may_use_device_ = true; }
  void begin() override { begin_ = may_use_device_ = true; }
  bool prestart_failed() const override { return prestart_failed_; }
  const std::vector<std::string>& gpus() const { return request_.job.gpus; }

 private:
  enum class Stage { running, stacks, ending, gpu, over };

  std::vector<record::Context> advance(std::int64_t now_ms);
  void look_at_gpus(std::int64_t now_ms, std::vector<record::Context>& finished);
  void write_files(const Command& command) const;
  void read_heartbeats(std::int64_t now_ms);
  void look_at_processes(std::int64_t now_ms);
  void decide(std::int64_t now_ms);
  void take_stacks(const HangDecision& hang, std::int64_t now_ms);
  void end(bool by_itself, std::int64_t now_ms);
  std::vector<std::size_t> ended_cases() const;
  void finish_ended_cases(std::int64_t now_ms, std::vector<record::Context>& finished);
  void finish_remaining_cases(std::int64_t now_ms, std::vector<record::Context>& finished);
  void finish(std::size_t index, std::int64_t now_ms, record::Cleanup cleanup,
              std::vector<record::Context>& finished);
  void conclude(std::int64_t now_ms, std::vector<record::Context>& finished);
  /// The rank whose end ended the batch, and how it ended; nothing if all ended well or we ended
  /// them.
  struct Culprit {
    int rank = 0;
    record::Exit exit;
  };
  std::optional<Culprit> culprit() const;
  record::Context context(std::size_t index, std::int64_t now_ms) const;
  record::Exit exit_of(int rank) const;
  record::Cleanup cleanup();
  std::vector<int> living_ranks() const;
  std::optional<std::int64_t> own_gpu_bytes(const std::string& gpu) const;
  /// Without the memory of the successor's ranks. Nothing where a GPU can't be asked.
  std::vector<GpuUse> gpus_in_use() const;
  void step_prestarted(std::int64_t now_ms);
  bool gpu_memory_is_back() const;
  /// Whether nothing is left, or nothing more is to be waited for. What does not come back next to
  /// prestarted ranks is asked again without them, because whose memory is whose is the driver's
  /// word: they are ended, and their cases start anew.
  bool gpu_memory_is_settled(std::int64_t now_ms);
  /// Nothing is measured any more; what is left is the end of the last case and its processes, and
  /// the proof that nothing was left.
  bool draining() const {
    return stage_ != Stage::over && detector_.measured(finished_.size() - 1);
  }
  /// Whether the driver tells which memory is whose. Not in a container with process ids of its
  /// own.
  bool owns_visible_gpu_memory() const;
  /// Whether the successor may use the device while this batch still runs.
  bool successor_may_use_device() const;

  BatchRequest request_;
  std::filesystem::path batch_folder_;
  std::unique_ptr<PrivateFolder> node_folder_, shm_folder_;
  std::unique_ptr<HeartbeatPipe> pipe_;
  std::unique_ptr<Cgroup> cgroup_;  // null: none can be made here
  std::unique_ptr<Child> child_;
  HangDetector detector_;
  Stage stage_ = Stage::running;
  std::optional<StackCollection> stacks_;
  std::optional<std::string> ras_address_;  // of the ranks' NCCL, if they were given its service
  std::optional<NcclRas> ras_;
  std::optional<FlightData> flight_data_;
  std::optional<Ending> ending_;
  std::optional<HangDecision> hang_;
  std::optional<record::Infra> infra_;
  StarterReport report_;
  std::optional<Culprit> culprit_;
  std::vector<GpuUse> gpus_before_;
  std::size_t gpu_troubles_ = 0;       // of gpu_health, that were looked at
  std::set<std::string> gpu_trouble_;  // of the GPUs themselves, since the last case ended
  std::unique_ptr<Leftovers> leftovers_;
  /// What was found between two cases is given a moment to go by itself; the context of its case
  /// waits.
  struct Suspicion {
    std::size_t case_index = 0;
    std::int64_t since_ms = 0;
    record::Cleanup found;
  };
  std::optional<Suspicion> suspicion_;
  std::vector<bool> finished_;  // a context was handed out
  std::int64_t started_ms_, ended_ms_;
  std::int64_t device_ms_ = 0;  // since when its prestarted ranks may use the device; 0: not yet
  std::int64_t looked_ms_ = 0, looked_at_ports_ms_ = 0, looked_between_ms_ = 0, ending_ms_ = 0,
               hung_ms_ = 0;
  std::int64_t rejected_lines_ = 0;
  bool stopped_ = false, by_itself_ = false;
  bool prestarted_ = false, may_use_device_ = false, begin_ = false, prestart_failed_ = false;
  bool alone_ = false;  // the successor was ended, so that this batch has the device alone
  std::weak_ptr<BatchRun> successor_;     // on the same slots
  std::optional<std::size_t> last_case_;  // nothing: all of them
};

}  // namespace graphproof::launcher
