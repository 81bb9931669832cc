// The FIFO through which the ranks of one batch send signs of life. A FIFO, because mpirun closes
// inherited descriptors; in a node-local folder, because a shared file system's caches would look
// like a hang.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace graphproof::launcher {

class HeartbeatPipe {
 public:
  /// Makes the FIFO and opens it for reading and writing: with a writer always there, a rank that
  /// ends causes no end of file, and one that starts never waits for a reader. Throws
  /// std::system_error.
  explicit HeartbeatPipe(std::filesystem::path path);
  /// Removes it.
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
