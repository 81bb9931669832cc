// A folder that nobody else may look into and that goes with its owner: for what must stay on this
// host during a run.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace graphproof::launcher {

/// Mode 0700; removed with everything in it. Locked (flock) while its owner lives, so that what an
/// owner that was killed left can be told from what is in use, also across the process id
/// namespaces of containers that share the place.
class PrivateFolder {
 public:
  /// REQUIRES: `path` does not exist; a folder that somebody else prepared is refused. Throws
  /// std::system_error.
  explicit PrivateFolder(std::filesystem::path path);
  ~PrivateFolder();
  PrivateFolder(const PrivateFolder&) = delete;
  PrivateFolder& operator=(const PrivateFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  /// Names of what lies in it.
  std::vector<std::string> content() const;

 private:
  std::filesystem::path path_;
  int lock_ = -1;
};

/// Removes the folders of this user in `top` whose name begins with `prefix` and whose owner no
/// longer lives. Returns those that are gone now.
std::vector<std::filesystem::path> remove_abandoned(const std::filesystem::path& top,
                                                    const std::string& prefix);

}  // namespace graphproof::launcher
