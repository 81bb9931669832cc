// For tests: a temporary folder, and a simulation of a full disk.
#pragma once

#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

namespace graphproof::record {

/// A folder of the test's own, which is removed with this object.
class ScratchFolder {
 public:
  /// The folder is in memory if that is possible, because each fsync on a disk costs milliseconds.
  ScratchFolder()
      : ScratchFolder(::access("/dev/shm", W_OK) == 0 ? "/dev/shm"
                                                      : std::filesystem::temp_directory_path()) {}
  explicit ScratchFolder(const std::filesystem::path& parent) {
    std::string pattern = (parent / "graphproof-test-XXXXXX").string();
    if (mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("cannot make " + pattern);
    path_ = pattern;
  }
  ~ScratchFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }

  /// The names in the folder, sorted.
  std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(path_))
      names.push_back(entry.path().filename().string());
    std::sort(names.begin(), names.end());
    return names;
  }

 private:
  std::filesystem::path path_;
};

/// While it exists, no file of this process can grow beyond `bytes`: a write fails with EFBIG after
/// a part was written, as it fails with ENOSPC on a full disk, and without privileges.
class FullDisk {
 public:
  explicit FullDisk(std::size_t bytes) {
    getrlimit(RLIMIT_FSIZE, &before_);
    handler_ = std::signal(SIGXFSZ, SIG_IGN);
    const rlimit small{bytes, before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &small);
  }
  ~FullDisk() {
    setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }
  FullDisk(const FullDisk&) = delete;
  FullDisk& operator=(const FullDisk&) = delete;

 private:
  rlimit before_{};
  void (*handler_)(int) = nullptr;
};

}  // namespace graphproof::record
