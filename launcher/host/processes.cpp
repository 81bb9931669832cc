#include "launcher/host/processes.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <set>
#include <sstream>
#include <utility>

namespace graphproof::launcher {
namespace {

constexpr unsigned kKernelThread = 0x00200000;  // PF_KTHREAD of Linux's sched.h

/// /proc/PID/stat is "pid (command) state parent group session terminal foreground flags ...", and
/// a command may contain spaces and brackets.
std::optional<Process> from_stat(const std::string& text) {
  const auto open = text.find('('), close = text.rfind(')');
  if (open == std::string::npos || close == std::string::npos) return std::nullopt;
  Process process;
  process.command = text.substr(open + 1, close - open - 1);
  int group = 0, terminal = 0, foreground = 0;
  unsigned flags = 0;
  const int read =
      std::sscanf(text.c_str() + close + 1, " %c %d %d %d %d %d %u", &process.state,
                  &process.parent, &group, &process.session, &terminal, &foreground, &flags);
  process.pid = std::atoi(text.c_str());
  process.kernel = (flags & kKernelThread) != 0;
  if (read != 7 || process.pid == 0) return std::nullopt;
  return process;
}

bool runs(const Process& process) { return process.state != 'Z' && process.state != 'X'; }

/// Leaves out the processes that were seen in the first `before` of the looks, if looks are kept.
std::vector<Process> all_processes(Looks* looks = nullptr, std::uint64_t before = 0) {
  std::vector<Process> found;
  const std::unique_ptr<DIR, int (*)(DIR*)> table(opendir("/proc"), closedir);
  decltype(Looks::first) seen;
  while (const dirent* entry = table ? readdir(table.get()) : nullptr) {
    const std::string_view name = entry->d_name;
    if (name.find_first_not_of("0123456789") != name.npos) continue;
    const int pid = std::atoi(entry->d_name);
    if (looks) {
      const auto known = looks->first.find(pid);
      const bool same = known != looks->first.end() && known->second.folder == entry->d_ino;
      const Looks::Seen first = same ? known->second : Looks::Seen{entry->d_ino, looks->count + 1};
      seen.emplace(pid, first);
      if (first.look <= before) continue;
    }
    if (const auto process = from_stat(proc_text("/proc/" + std::string(name) + "/stat")))
      found.push_back(*process);
  }
  if (looks) *looks = {looks->count + 1, std::move(seen)};
  return found;
}

bool carries(int pid, const std::string& entry) {
  const bool all_that_begin = entry.ends_with('.');
  const std::string environment = proc_text("/proc/" + std::to_string(pid) + "/environ");
  for (std::size_t at = 0; at < environment.size();) {
    const std::size_t end = std::min(environment.find('\0', at), environment.size());
    const std::string_view variable = std::string_view(environment).substr(at, end - at);
    if (variable == entry || (all_that_begin && variable.starts_with(entry))) return true;
    at = end + 1;
  }
  return false;
}

/// The children of this process, also those that it did not start itself; all processes where the
/// kernel does not list children.
std::vector<Process> children() {
  std::vector<Process> found;
  bool listed = false;
  std::error_code gone;
  for (std::filesystem::directory_iterator task("/proc/self/task", gone), end; !gone && task != end;
       task.increment(gone)) {
    const std::filesystem::path file = task->path() / "children";
    listed = listed || access(file.c_str(), R_OK) == 0;
    std::istringstream pids(proc_text(file));
    for (std::string pid; pids >> pid;)
      if (const auto process = from_stat(proc_text("/proc/" + pid + "/stat")))
        found.push_back(*process);
  }
  return listed ? found : all_processes();
}

}  // namespace

std::string proc_text(const std::string& path) {
  std::string text;
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return text;
  std::array<char, 4096> part;
  for (ssize_t got;
       (got = read(file, part.data(), part.size())) > 0 || (got < 0 && errno == EINTR);)
    if (got > 0) text.append(part.data(), static_cast<std::size_t>(got));
  close(file);
  return text;
}

std::int64_t queued_ms(int pid) {
  const std::string tasks = "/proc/" + std::to_string(pid) + "/task";
  const std::unique_ptr<DIR, int (*)(DIR*)> table(opendir(tasks.c_str()), closedir);
  std::int64_t queued_ns = 0;
  while (const dirent* entry = table ? readdir(table.get()) : nullptr) {
    // On a processor, in the queue for one (both in ns), and how often.
    long long ran = 0, queued = 0;
    if (std::sscanf(proc_text(tasks + "/" + entry->d_name + "/schedstat").c_str(), "%lld %lld",
                    &ran, &queued) == 2)
      queued_ns += queued;
  }
  return queued_ns / 1'000'000;
}

std::optional<Process> running_process(int pid) {
  const auto process = from_stat(proc_text("/proc/" + std::to_string(pid) + "/stat"));
  return process && runs(*process) ? process : std::nullopt;
}

std::vector<Process> running_processes() {
  std::vector<Process> found = all_processes();
  std::erase_if(found, [](const Process& process) { return !runs(process); });
  return found;
}

std::vector<Process> processes_of(int session, std::string_view mark, Looks* looks,
                                  std::uint64_t before, const std::filesystem::path& groups) {
  const std::string entry = std::string(kMarkVariable) + "=" + std::string(mark);
  std::vector<Process> found = all_processes(looks, before);
  const std::vector<int> members = cgroup_members(mark, groups);
  std::erase_if(found, [&](const Process& process) {
    if (!runs(process) || process.pid == getpid() || process.kernel) return true;
    if (std::find(members.begin(), members.end(), process.pid) != members.end()) return false;
    return (session == 0 || process.session != session) && !carries(process.pid, entry);
  });
  return found;
}

void reap_orphans(const std::vector<int>& known) {
  for (const Process& process : children())
    if (process.parent == getpid() && process.state == 'Z' &&
        std::find(known.begin(), known.end(), process.pid) == known.end())
      waitpid(process.pid, nullptr, WNOHANG);
}

std::vector<Process> ProcessTable::of(int session, std::string_view mark,
                                      std::uint64_t looks_before) const {
  return processes_of(session, mark, &looks_, looks_before, groups_);
}

void ProcessTable::send(int pid, int signal) const { ::kill(pid, signal); }

void ProcessTable::kill_group(std::string_view mark) const { kill_cgroups(mark, groups_); }

std::vector<std::string> open_files(int pid) {
  std::vector<std::string> targets;
  std::error_code gone;
  for (std::filesystem::directory_iterator entry("/proc/" + std::to_string(pid) + "/fd", gone), end;
       !gone && entry != end; entry.increment(gone)) {
    std::error_code closed;
    const std::filesystem::path target = std::filesystem::read_symlink(entry->path(), closed);
    if (!closed) targets.push_back(target);
  }
  return targets;
}

std::vector<std::string> shm_in_use(int pid) {
  static constexpr std::string_view folder = "/dev/shm/", gone = " (deleted)";
  std::set<std::string> names;
  std::istringstream maps(proc_text("/proc/" + std::to_string(pid) + "/maps"));
  for (std::string line; std::getline(maps, line);)
    if (const auto at = line.find(folder); at != std::string::npos && !line.ends_with(gone))
      names.insert(line.substr(at));
  for (const std::string& target : open_files(pid))
    if (target.starts_with(folder) && !target.ends_with(gone)) names.insert(target);
  return {names.begin(), names.end()};
}

}  // namespace graphproof::launcher
