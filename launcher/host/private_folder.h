// A folder that no other user may read and that goes with its owner: for what must stay on this
// host during a run.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace graphproof::launcher {

/// A folder of mode 0700, removed with everything in it by the destructor. It is locked (flock)
/// while its owner lives, so that a folder that a killed owner left can be told from one in use,
/// also across the process id namespaces of containers that share the place.
class PrivateFolder {
 public:
  /// REQUIRES: `path` does not exist. A folder that another user prepared there is refused. Throws
  /// std::system_error.
  explicit PrivateFolder(std::filesystem::path path);
  ~PrivateFolder();
  PrivateFolder(const PrivateFolder&) = delete;
  PrivateFolder& operator=(const PrivateFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  /// The names of the entries.
  std::vector<std::string> content() const;

 private:
  std::filesystem::path path_;
  int lock_ = -1;
};

/// Removes the folders of this user in `top` whose name begins with `prefix` and whose owner is
/// dead. Returns those that are gone now.
std::vector<std::filesystem::path> remove_abandoned(const std::filesystem::path& top,
                                                    const std::string& prefix);

}  // namespace graphproof::launcher
