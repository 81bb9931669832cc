// The folders of a run that never leave this host: FIFOs and mpirun's own files lie in the
// temporary folder, shared memory in /dev/shm. Their names contain the run, so that a resumed run
// can remove what its killed launcher left.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "launcher/host/private_folder.h"

namespace graphproof::launcher {

/// The two folders of one launcher. They are removed with it.
class HostFolders {
 public:
  /// Throws std::system_error.
  explicit HostFolders(const std::string& run_id);

  const std::filesystem::path& node() const { return node_->path(); }
  const std::filesystem::path& shm() const { return shm_->path(); }

 private:
  std::unique_ptr<PrivateFolder> node_, shm_;
};

/// Removes the folders of `run_id` whose launcher is dead. Returns those that are gone now.
std::vector<std::filesystem::path> remove_abandoned_host_folders(const std::string& run_id);

}  // namespace graphproof::launcher
