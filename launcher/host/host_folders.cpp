#include "launcher/host/host_folders.h"

#include <unistd.h>

#include <system_error>

namespace graphproof::launcher {
namespace {

namespace fs = std::filesystem;

/// The name is short, because paths of Unix sockets below the folder have at most 107 bytes: the
/// last digits of the run's id, and the launcher's process id.
std::string prefix(const std::string& run_id) {
  return "graphproof-" + std::to_string(getuid()) + "-" + run_id.substr(run_id.size() - 4) + "-";
}

}  // namespace

HostFolders::HostFolders(const std::string& run_id) {
  const std::string name = prefix(run_id) + std::to_string(getpid());
  node_ = std::make_unique<PrivateFolder>(fs::temp_directory_path() / name);
  // Without /dev/shm, shared memory goes to files. That is slower, but a machine without it has few
  // ranks.
  std::error_code absent;
  const bool in_memory = fs::is_directory("/dev/shm", absent) && access("/dev/shm", W_OK) == 0;
  shm_ = std::make_unique<PrivateFolder>((in_memory ? fs::path("/dev/shm") : node_->path()) /
                                         (name + "-shm"));
}

std::vector<fs::path> remove_abandoned_host_folders(const std::string& run_id) {
  std::vector<fs::path> removed = remove_abandoned(fs::temp_directory_path(), prefix(run_id));
  const std::vector<fs::path> in_memory = remove_abandoned("/dev/shm", prefix(run_id));
  removed.insert(removed.end(), in_memory.begin(), in_memory.end());
  return removed;
}

}  // namespace graphproof::launcher
