// The ranks of a batch as this host has them: the starter's process and control group, the batch's
// folders and files, the FIFO of its heartbeats, and what the ranks may leave behind.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "launcher/batch/batch_request.h"
#include "launcher/batch/hang_detector.h"
#include "launcher/batch/heartbeat_pipe.h"
#include "launcher/host/cgroup.h"
#include "launcher/host/child.h"
#include "launcher/host/leftovers.h"
#include "launcher/host/private_folder.h"

namespace graphproof::launcher {

/// The ranks of one batch. Their folders are removed with it; the processes must be ended before.
class StartedRanks {
 public:
  // How often the process table is read. A death is noticed within this time, and also by mpirun's
  // own end.
  static constexpr std::int64_t kLook_ms = 100;
  // A rank has hundreds of descriptors; a listening socket stays open for longer than this.
  static constexpr std::int64_t kLookAtPorts_ms = 1000;

  /// Writes batches/B/{batch.json,command,env}, makes the FIFO and starts the ranks. Completes
  /// `request` with what that takes. Throws std::system_error or record::WriteError.
  StartedRanks(BatchRequest& request, const std::filesystem::path& batch_folder);

  /// Gives the heartbeats that have arrived to `detector`. Lines that it does not accept are kept
  /// in batches/B/heartbeat.rejected.
  void read_heartbeats(HangDetector& detector, std::int64_t now_ms);
  /// Tells `detector` which ranks are gone, and looks at what the living ones hold.
  void look_at_processes(HangDetector& detector, std::int64_t now_ms);

  /// Prestarted ranks: they may use the device, or begin.
  void allow_device() const;
  void begin() const;
  /// The ranks begin no other case, and end by themselves.
  void stop_after_case() const;

  int starter_pid() const { return starter_->pid(); }
  /// How the starter ended; nothing while it runs.
  std::optional<Exit> starter_exit() { return starter_->poll(); }
  /// What the starter has printed so far.
  std::string starter_log() const;
  Leftovers& leftovers() { return *leftovers_; }
  const std::filesystem::path& node_folder() const { return node_folder_->path(); }
  /// Where the ranks' NCCL can be asked; nothing where they have no such service.
  const std::optional<std::string>& ras_address() const { return ras_address_; }

 private:
  const std::filesystem::path batch_folder_;
  std::unique_ptr<PrivateFolder> node_folder_, shm_folder_;
  std::unique_ptr<HeartbeatPipe> pipe_;
  std::unique_ptr<Leftovers> leftovers_;
  std::unique_ptr<Cgroup> cgroup_;  // null: none can be made here
  std::unique_ptr<Child> starter_;
  std::optional<std::string> ras_address_;
  std::int64_t looked_ms_ = 0, looked_at_ports_ms_ = 0;
  int rejected_lines_ = 0;
};

}  // namespace graphproof::launcher
