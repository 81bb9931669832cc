// One launcher per run folder. The kernel holds the lock, so it ends with its owner in whatever way
// that ends; the content of the file only names the owner. A shared file system must support flock
// (NFS does since Linux 2.6.12).
#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace graphproof::launcher {

/// The lock of one run folder, held while this object lives.
class RunLock {
 public:
  /// Takes the lock of `folder`. Throws matrix::InputError naming the owner while another launcher
  /// holds it, and record::WriteError when the file can't be made.
  explicit RunLock(const std::filesystem::path& folder);
  ~RunLock();
  RunLock(const RunLock&) = delete;
  RunLock& operator=(const RunLock&) = delete;

  /// "process 4711 on node1" while a launcher holds the run; nothing otherwise. Takes no lock.
  static std::optional<std::string> owner(const std::filesystem::path& folder);

 private:
  int descriptor_ = -1;
};

}  // namespace graphproof::launcher
