#include "launcher/processes.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <sstream>

namespace graphproof::launcher {
namespace {

/// /proc/PID/stat is "pid (command) state parent group session ...", and a command may hold spaces and brackets.
std::optional<Process> from_stat(const std::string& text) {
  const auto open = text.find('('), close = text.rfind(')');
  if (open == std::string::npos || close == std::string::npos) return std::nullopt;
  Process process;
  process.command = text.substr(open + 1, close - open - 1);
  int group = 0;
  std::istringstream rest(text.substr(close + 1));
  rest >> process.state >> process.parent >> group >> process.session;
  process.pid = std::atoi(text.c_str());
  if (!rest || process.pid == 0) return std::nullopt;
  return process;
}

bool runs(const Process& process) { return process.state != 'Z' && process.state != 'X'; }

std::vector<Process> all_processes() {
  std::vector<Process> found;
  std::error_code gone;
  for (std::filesystem::directory_iterator entry("/proc", gone), end; !gone && entry != end; entry.increment(gone)) {
    const std::string name = entry->path().filename();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    if (auto process = from_stat(proc_text("/proc/" + name + "/stat"))) found.push_back(*process);
  }
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

/// Where the open descriptors of a process lead: paths, "socket:[4711]" and the like.
std::vector<std::string> open_files(const std::filesystem::path& process) {
  std::vector<std::string> targets;
  std::error_code gone;
  for (std::filesystem::directory_iterator entry(process / "fd", gone), end; !gone && entry != end; entry.increment(gone)) {
    std::error_code closed;
    const std::filesystem::path target = std::filesystem::read_symlink(entry->path(), closed);
    if (!closed) targets.push_back(target);
  }
  return targets;
}

}  // namespace

std::string proc_text(const std::string& path) {
  std::string text;
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return text;
  std::array<char, 4096> part;
  for (ssize_t got; (got = read(file, part.data(), part.size())) > 0 || (got < 0 && errno == EINTR);)
    if (got > 0) text.append(part.data(), static_cast<std::size_t>(got));
  close(file);
  return text;
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

std::vector<Process> processes_of(int session, std::string_view mark) {
  const std::string entry = std::string(kMarkVariable) + "=" + std::string(mark);
  std::vector<Process> found = running_processes();
  std::erase_if(found, [&](const Process& process) {
    if (process.pid == getpid()) return true;
    return (session == 0 || process.session != session) && !carries(process.pid, entry);
  });
  return found;
}

void reap_orphans(const std::vector<int>& known) {
  for (const Process& process : all_processes())
    if (process.parent == getpid() && process.state == 'Z' &&
        std::find(known.begin(), known.end(), process.pid) == known.end())
      waitpid(process.pid, nullptr, WNOHANG);
}

std::vector<Process> ProcessTable::of(int session, std::string_view mark) const { return processes_of(session, mark); }

void ProcessTable::send(int pid, int signal) const { ::kill(pid, signal); }

std::vector<std::string> shm_in_use(int pid) {
  static constexpr std::string_view folder = "/dev/shm/", gone = " (deleted)";
  const std::filesystem::path process = "/proc/" + std::to_string(pid);
  std::set<std::string> names;
  std::istringstream maps(proc_text(process / "maps"));
  for (std::string line; std::getline(maps, line);)
    if (const auto at = line.find(folder); at != std::string::npos && !line.ends_with(gone)) names.insert(line.substr(at));
  for (const std::string& target : open_files(process))
    if (target.starts_with(folder) && !target.ends_with(gone)) names.insert(target);
  return {names.begin(), names.end()};
}

/// /proc/net/tcp: "sl local_address rem_address st tx:rx tr:when retrnsmt uid timeout inode ...", addresses in hex.
Listeners all_listeners() {
  static constexpr std::string_view kListen = "0A";
  Listeners found;
  for (const char* file : {"/proc/self/net/tcp", "/proc/self/net/tcp6"}) {
    std::istringstream lines(proc_text(file));
    for (std::string line; std::getline(lines, line);) {
      std::istringstream words(line);
      std::string number, local, remote, state, queues, timer, retries, user, timeout, inode;
      words >> number >> local >> remote >> state >> queues >> timer >> retries >> user >> timeout >> inode;
      const auto colon = local.rfind(':');
      if (state == kListen && colon != std::string::npos)
        found.emplace(inode, static_cast<int>(std::strtol(local.c_str() + colon + 1, nullptr, 16)));
    }
  }
  return found;
}

Listeners listeners_of(const std::vector<int>& pids) {
  static constexpr std::string_view kSocket = "socket:[";
  std::set<std::string> sockets;
  for (const int pid : pids)
    for (const std::string& target : open_files("/proc/" + std::to_string(pid)))
      if (target.starts_with(kSocket)) sockets.insert(target.substr(kSocket.size(), target.size() - kSocket.size() - 1));
  if (sockets.empty()) return {};
  Listeners found = all_listeners();
  std::erase_if(found, [&](const auto& listener) { return !sockets.contains(listener.first); });
  return found;
}

}  // namespace graphproof::launcher
