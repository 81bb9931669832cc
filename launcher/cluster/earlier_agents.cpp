#include "launcher/cluster/earlier_agents.h"

#include <system_error>

#include "launcher/cluster/channel.h"

namespace graphproof::cluster {

namespace fs = std::filesystem;

namespace {

bool has_left(const fs::path& channel) {
  for (const std::string& line : LineReader(reports_file(channel)).next())
    if (line.find("\"report\":\"leaving\"") != line.npos) return true;
  return false;
}

}  // namespace

EarlierAgents::EarlierAgents(const fs::path& run_folder) {
  std::error_code absent;
  for (const auto& channels : fs::directory_iterator(run_folder / "pilots", absent)) {
    if (!channels.is_directory()) continue;
    ++folders_;
    append_line(revoked_file(channels.path()), "another launcher goes on with the run\n");
    for (const auto& channel : fs::directory_iterator(channels.path(), absent))
      if (fs::exists(reports_file(channel.path()), absent)) channels_.push_back(channel.path());
  }
}

int EarlierAgents::left_behind() {
  std::erase_if(channels_, has_left);
  return static_cast<int>(channels_.size());
}

}  // namespace graphproof::cluster
