// A folder that nobody else may look into and that goes with its owner: for what must stay on this host during a run.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace graphproof::launcher {

/// Mode 0700; removed with everything in it.
class PrivateFolder {
 public:
  /// REQUIRES: `path` does not exist; a folder that somebody else prepared is refused. Throws std::system_error.
  explicit PrivateFolder(std::filesystem::path path);
  ~PrivateFolder();
  PrivateFolder(const PrivateFolder&) = delete;
  PrivateFolder& operator=(const PrivateFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  /// Names of what lies in it.
  std::vector<std::string> content() const;

 private:
  std::filesystem::path path_;
};

}  // namespace graphproof::launcher
