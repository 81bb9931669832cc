// Agents that an earlier launcher of this run brought to nodes, and that may still be there. They
// are ordered to leave before anything is started again.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace graphproof::cluster {

/// Found by the folders of their channels.
class EarlierAgents {
 public:
  /// Revokes every folder of channels below RUN/pilots. REQUIRES: the run is locked.
  explicit EarlierAgents(const std::filesystem::path& run_folder);

  /// The number of folders of channels that exist: the next one is named after them.
  int folders() const { return folders_; }
  /// The number of agents that came and have not left yet.
  int left_behind();

 private:
  std::vector<std::filesystem::path> channels_;
  int folders_ = 0;
};

}  // namespace graphproof::cluster
