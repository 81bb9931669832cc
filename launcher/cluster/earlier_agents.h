// Agents that an earlier launcher of this run brought to nodes, and that may still be there: told
// to leave before anything is started again.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace graphproof::cluster {

class EarlierAgents {
 public:
  /// Revokes every folder of channels below RUN/pilots. REQUIRES: the run is locked.
  explicit EarlierAgents(const std::filesystem::path& run_folder);

  /// Folders of channels that there were: the next one is named after them.
  int folders() const { return folders_; }
  /// Those that came and have not left yet.
  int left_behind();

 private:
  std::vector<std::filesystem::path> channels_;
  int folders_ = 0;
};

}  // namespace graphproof::cluster
