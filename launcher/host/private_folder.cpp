#include "launcher/host/private_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

namespace graphproof::launcher {
namespace {

// Between mkdir and flock a folder looks abandoned, and another launcher's clean-up may remove it.
// It is then made once more.
constexpr int kTries = 3;

/// Makes `path` and locks it; -1 when it was removed meanwhile.
int make_locked(const std::filesystem::path& path) {
  if (mkdir(path.c_str(), 0700) != 0)
    throw std::system_error(errno, std::generic_category(),
                            "can't make the folder '" + path.string() + "'");
  const int descriptor = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  struct stat mine, there;
  if (descriptor >= 0 && flock(descriptor, LOCK_EX | LOCK_NB) == 0 &&
      fstat(descriptor, &mine) == 0 && stat(path.c_str(), &there) == 0 &&
      mine.st_ino == there.st_ino)
    return descriptor;
  if (descriptor >= 0) close(descriptor);
  return -1;
}

/// True when no process held its lock and it is gone.
bool remove_if_abandoned(const std::filesystem::path& path) {
  const int descriptor = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (descriptor < 0) return false;
  struct stat facts;
  const bool abandoned = fstat(descriptor, &facts) == 0 && facts.st_uid == getuid() &&
                         flock(descriptor, LOCK_EX | LOCK_NB) == 0;
  std::error_code error;
  const bool removed = abandoned && std::filesystem::remove_all(path, error) > 0 && !error;
  close(descriptor);
  return removed;
}

}  // namespace

PrivateFolder::PrivateFolder(std::filesystem::path path) : path_(std::move(path)) {
  for (int attempt = 0; lock_ < 0 && attempt < kTries; ++attempt) lock_ = make_locked(path_);
  if (lock_ < 0)
    throw std::system_error(EBUSY, std::generic_category(),
                            "can't keep the folder '" + path_.string() + "'");
}

PrivateFolder::~PrivateFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
  close(lock_);
}

std::vector<std::string> PrivateFolder::content() const {
  std::vector<std::string> names;
  std::error_code gone;
  for (const auto& entry : std::filesystem::directory_iterator(path_, gone))
    names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  return names;
}

std::vector<std::filesystem::path> remove_abandoned(const std::filesystem::path& top,
                                                    const std::string& prefix) {
  std::vector<std::filesystem::path> candidates, removed;
  std::error_code gone;
  for (const auto& entry : std::filesystem::directory_iterator(top, gone))
    if (entry.path().filename().string().starts_with(prefix)) candidates.push_back(entry.path());
  for (const std::filesystem::path& candidate : candidates)
    if (remove_if_abandoned(candidate)) removed.push_back(candidate);
  return removed;
}

}  // namespace graphproof::launcher
