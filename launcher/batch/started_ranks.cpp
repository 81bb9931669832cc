#include "launcher/batch/started_ranks.h"

#include <fstream>
#include <utility>
#include <vector>

#include "launcher/backend/local_command.h"
#include "launcher/gpu/nccl_ras.h"
#include "reports/record/job/rank_orders.h"
#include "reports/record/text/file.h"

namespace graphproof::launcher {
namespace {

namespace fs = std::filesystem;

// Rejected heartbeat lines that are kept for the reader of batches/B.
constexpr int kRejectedKept = 100;

std::string quoted(const std::string& word) {
  if (word.find_first_not_of(
          "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./=:,") == word.npos &&
      !word.empty())
    return word;
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

/// What the ranks read and what a person reads afterwards. A batch is not resumed, so none of it
/// has to outlast this host.
void write_files(const fs::path& folder, const record::Batch& batch, const Command& command) {
  record::write_json(folder / "batch.json", record::to_json(batch), record::Survives::kill);
  std::string line;
  for (const std::string& argument : command.arguments)
    line += (line.empty() ? "" : " ") + quoted(argument);
  record::write_atomically(folder / "command", line + "\n", record::Survives::kill);
  std::string variables;
  for (const auto& [name, value] : redacted(command.environment))
    variables += name + "=" + value + "\n";
  record::write_atomically(folder / "env", variables, record::Survives::kill);
}

}  // namespace

StartedRanks::StartedRanks(BatchRequest& request, const fs::path& batch_folder)
    : batch_folder_(batch_folder) {
  record::Batch& batch = request.batch;
  fs::create_directories(batch_folder_);
  node_folder_ = std::make_unique<PrivateFolder>(request.node_folder / batch.batch);
  shm_folder_ = std::make_unique<PrivateFolder>(request.shm_folder / batch.batch);
  pipe_ = std::make_unique<HeartbeatPipe>(node_folder_->path() / "heartbeat");
  batch.heartbeat_fifo = pipe_->path();
  batch.store = batch_folder_ / "store";
  fs::remove_all(batch.store);  // the ranks of an earlier start would answer
  batch.log_folder = batch_folder_;
  batch.mark = batch.run_id + "." + batch.batch;
  for (record::BatchCase& one : batch.cases) {
    // What an earlier start of the same attempt left is not evidence of this one.
    fs::remove_all(one.evidence_folder);
    fs::create_directories(one.evidence_folder);
  }
  Job& job = request.job;
  job.batch_file = batch_folder_ / "batch.json";
  job.mark = batch.mark;
  job.node_folder = node_folder_->path();
  job.shm_folder = shm_folder_->path();
  job.environment[record::kStopVariable] = shm_folder_->path() / record::kStopFile;
  if (request.prestarted)
    job.environment[record::kGoVariable] = shm_folder_->path() / record::kGoFile;
  const Command command = local_command(job, own_environment());
  write_files(batch_folder_, batch, command);
  if (batch.device == "cuda") ras_address_ = launcher::ras_address(command.environment);
  leftovers_ = std::make_unique<Leftovers>(*request.processes, *node_folder_, *shm_folder_,
                                           batch.device == "sim");
  cgroup_ = request.processes->make_group(batch.mark);
  starter_ = std::make_unique<Child>(command, batch_folder_ / "starter.log", fs::path(),
                                     cgroup_ ? cgroup_->folder() : fs::path());
  leftovers_->started(starter_->pid(), batch.mark);
}

void StartedRanks::read_heartbeats(HangDetector& detector, std::int64_t now_ms) {
  for (const std::string& line : pipe_->read_lines()) {
    bool accepted = false;
    try {
      accepted = detector.heartbeat(record::heartbeat_from(line, pipe_->path()), now_ms);
    } catch (const record::ReadError&) {
      // Not a heartbeat: kept below, and no sign of life.
    }
    if (!accepted && ++rejected_lines_ <= kRejectedKept)
      std::ofstream(batch_folder_ / "heartbeat.rejected", std::ios::app) << line << "\n";
  }
}

void StartedRanks::look_at_processes(HangDetector& detector, std::int64_t now_ms) {
  if (now_ms - looked_ms_ < kLook_ms) return;
  looked_ms_ = now_ms;
  for (int rank = 0; rank < detector.world_size(); ++rank) {
    const RankProcess& process = detector.process(rank);
    if (process.pid == 0 || process.gone) continue;
    if (running_process(static_cast<int>(process.pid)))
      detector.queued(rank, queued_ms(static_cast<int>(process.pid)));
    else
      detector.gone(rank, now_ms);
  }
  const std::vector<int> ranks = detector.living_pids();
  leftovers_->look(ranks);
  if (now_ms - looked_at_ports_ms_ < kLookAtPorts_ms) return;
  looked_at_ports_ms_ = now_ms;
  leftovers_->look_at_ports(ranks);
}

void StartedRanks::allow_device() const {
  std::ofstream(shm_folder_->path() / (std::string(record::kGoFile) + record::kDeviceSuffix))
      .flush();
}

void StartedRanks::begin() const { std::ofstream(shm_folder_->path() / record::kGoFile).flush(); }

void StartedRanks::stop_after_case() const {
  std::ofstream(shm_folder_->path() / record::kStopFile).flush();
}

std::string StartedRanks::starter_log() const {
  return record::read_text(batch_folder_ / "starter.log");
}

}  // namespace graphproof::launcher
