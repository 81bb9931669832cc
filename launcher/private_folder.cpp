#include "launcher/private_folder.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

namespace graphproof::launcher {

PrivateFolder::PrivateFolder(std::filesystem::path path) : path_(std::move(path)) {
  if (mkdir(path_.c_str(), 0700) != 0) throw std::system_error(errno, std::generic_category(), "can't make the folder '" + path_.string() + "'");
}

PrivateFolder::~PrivateFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::vector<std::string> PrivateFolder::content() const {
  std::vector<std::string> names;
  std::error_code gone;
  for (const auto& entry : std::filesystem::directory_iterator(path_, gone)) names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace graphproof::launcher
