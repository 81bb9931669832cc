// The FIFO through which the ranks of one batch send heartbeats. It is a FIFO, because mpirun
// closes inherited descriptors, and it lies in a node-local folder, because the caches of a shared
// file system would look like a hang.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace graphproof::launcher {

/// The reading end, which the launcher holds.
class HeartbeatPipe {
 public:
  /// Makes the FIFO and opens it for reading and writing. Because a writer always exists, a rank
  /// that ends causes no end of file, and one that starts never waits for a reader. Throws
  /// std::system_error.
  explicit HeartbeatPipe(std::filesystem::path path);
  /// Removes the FIFO.
  ~HeartbeatPipe();
  HeartbeatPipe(const HeartbeatPipe&) = delete;
  HeartbeatPipe& operator=(const HeartbeatPipe&) = delete;

  /// The complete lines that have arrived, at most 1 MiB of them a call. Never waits.
  std::vector<std::string> read_lines();

  const std::filesystem::path& path() const { return path_; }
  int descriptor() const { return descriptor_; }

 private:
  std::filesystem::path path_;
  int descriptor_ = -1;
  std::string partial_;
};

}  // namespace graphproof::launcher
