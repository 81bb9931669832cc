#include "launcher/host/cgroup.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <system_error>
#include <utility>

#include "launcher/host/processes.h"

namespace graphproof::launcher {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "graphproof-";

/// The line of /proc/self/mountinfo that says where version 2 is mounted and which group is the
/// root there: "ID PARENT MAJOR:MINOR ROOT POINT OPTIONS ... - cgroup2 ...".
std::pair<fs::path, fs::path> mounted() {
  std::istringstream lines(proc_text("/proc/self/mountinfo"));
  for (std::string line; std::getline(lines, line);) {
    if (line.find(" - cgroup2 ") == line.npos) continue;
    std::istringstream words(line);
    std::string id, parent, device, root, point;
    words >> id >> parent >> device >> root >> point;
    return {point, root};
  }
  return {};
}

}  // namespace

fs::path cgroup_parent() {
  static constexpr std::string_view kVersion2 = "0::";
  const auto [point, root] = mounted();
  std::istringstream lines(proc_text("/proc/self/cgroup"));
  for (std::string line; !point.empty() && std::getline(lines, line);) {
    if (!line.starts_with(kVersion2)) continue;
    const fs::path group = line.substr(kVersion2.size());
    const fs::path below = group.lexically_relative(root);
    if (below.empty() || *below.begin() == "..") return {};
    const fs::path folder = (point / below).lexically_normal();
    // A process may be moved only by a process that may write to the group that holds both.
    const bool may =
        access(folder.c_str(), W_OK) == 0 && access((folder / "cgroup.procs").c_str(), W_OK) == 0;
    return may ? folder : fs::path();
  }
  return {};
}

std::unique_ptr<Cgroup> Cgroup::make(const std::string& mark, const fs::path& parent) {
  // Slurm looks for the processes of a step only in its own groups.
  if (std::getenv("SLURM_JOB_ID") != nullptr) return nullptr;
  if (parent.empty()) return nullptr;
  fs::path folder = parent / (std::string(kPrefix) + mark);
  if (mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) return nullptr;
  return std::unique_ptr<Cgroup>(new Cgroup(std::move(folder)));
}

Cgroup::~Cgroup() { rmdir(folder_.c_str()); }

std::vector<fs::path> cgroups_of(std::string_view mark, const fs::path& parent) {
  if (parent.empty()) return {};
  const std::string name = std::string(kPrefix) + std::string(mark);
  std::error_code gone;
  if (!mark.ends_with('.'))
    return fs::is_directory(parent / name, gone) ? std::vector{parent / name}
                                                 : std::vector<fs::path>();
  std::vector<fs::path> found;
  for (fs::directory_iterator entry(parent, gone), end; !gone && entry != end;
       entry.increment(gone))
    if (entry->path().filename().string().starts_with(name)) found.push_back(entry->path());
  return found;
}

std::vector<int> cgroup_members(std::string_view mark, const fs::path& parent) {
  std::vector<int> pids;
  for (const fs::path& group : cgroups_of(mark, parent)) {
    std::istringstream lines(proc_text(group / "cgroup.procs"));
    for (int pid = 0; lines >> pid;)
      if (pid > 0) pids.push_back(pid);  // 0: of another process namespace
  }
  return pids;
}

void kill_cgroups(std::string_view mark, const fs::path& parent) {
  for (const fs::path& group : cgroups_of(mark, parent))
    std::ofstream(group / "cgroup.kill") << "1";
}

void remove_cgroups(std::string_view mark) {
  for (const fs::path& group : cgroups_of(mark)) rmdir(group.c_str());
}

}  // namespace graphproof::launcher
