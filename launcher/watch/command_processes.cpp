#include "launcher/watch/command_processes.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <system_error>

namespace graphproof::launcher {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kShownCommand = 200;

std::string of_process(int pid, const std::string& file) {
  return "/proc/" + std::to_string(pid) + "/" + file;
}

/// Fields of a stat file of /proc from the third on; the name before them may hold spaces.
std::vector<std::string> stat_fields(const std::string& text) {
  std::vector<std::string> fields;
  std::size_t at = text.rfind(')');
  while (at != std::string::npos && at < text.size()) {
    const std::size_t begin = text.find_first_not_of(" )\n", at);
    if (begin == std::string::npos) break;
    at = std::min(text.find_first_of(" \n", begin), text.size());
    fields.push_back(text.substr(begin, at - begin));
  }
  return fields;
}

std::int64_t number(const std::vector<std::string>& fields, std::size_t field) {
  return field < fields.size() ? std::strtoll(fields[field].c_str(), nullptr, 10) : 0;
}

// Positions in stat_fields().
constexpr std::size_t kState = 0, kUserTicks = 11, kSystemTicks = 12, kStartTicks = 19,
                      kStatus = 49;

}  // namespace

std::vector<Process> descendants_of(int ancestor, const std::vector<Process>& all) {
  std::set<int> known = {ancestor};
  std::vector<Process> found;
  // A process may be listed before its parent, so the list is passed until nothing is added.
  for (bool more = true; more;) {
    more = false;
    for (const Process& process : all)
      if (known.contains(process.parent) && known.insert(process.pid).second) {
        found.push_back(process);
        more = true;
      }
  }
  return found;
}

std::vector<Process> Descendants::of(int, std::string_view, std::uint64_t) const {
  return descendants_of(getpid(), running_processes());
}

std::int64_t cpu_ms(int pid, const std::set<std::int64_t>& left_out) {
  static const std::int64_t kTicksPerSecond = sysconf(_SC_CLK_TCK);
  std::int64_t ticks = 0;
  std::error_code gone;
  for (fs::directory_iterator task(of_process(pid, "task"), gone), end; !gone && task != end;
       task.increment(gone)) {
    if (left_out.contains(std::atoll(task->path().filename().c_str()))) continue;
    const std::string text = proc_text(task->path() / "stat");
    if (text.find("(NCCL") != std::string::npos) continue;
    const std::vector<std::string> fields = stat_fields(text);
    ticks += number(fields, kUserTicks) + number(fields, kSystemTicks);
  }
  return ticks * 1000 / kTicksPerSecond;
}

std::int64_t start_ticks(int pid) {
  return number(stat_fields(proc_text(of_process(pid, "stat"))), kStartTicks);
}

std::optional<int> status_of_ended(int pid, std::int64_t began_ticks) {
  const std::vector<std::string> fields = stat_fields(proc_text(of_process(pid, "stat")));
  if (fields.size() <= kStatus || fields[kState] != "Z" ||
      number(fields, kStartTicks) != began_ticks)
    return std::nullopt;
  return static_cast<int>(number(fields, kStatus));
}

std::string command_line_of(const Process& process) {
  std::string text = proc_text(of_process(process.pid, "cmdline")).substr(0, kShownCommand);
  while (text.ends_with('\0')) text.pop_back();
  std::ranges::replace(text, '\0', ' ');
  return text.empty() ? process.command : text;
}

std::optional<std::string> hidden_from(int pid, const std::vector<fs::path>& paths) {
  const std::string root = of_process(pid, "root");
  std::error_code error;
  for (const fs::path& path : paths)
    if (fs::status(root + path.string(), error).type() == fs::file_type::not_found)
      // Of a process that has ended meanwhile nothing exists there.
      return fs::exists(root + "/", error) ? std::optional(path.string()) : std::nullopt;
  return std::nullopt;
}

CudaUse cuda_use(int pid, const fs::path& probe, const fs::path& probe_folder) {
  CudaUse use;
  const std::string maps = proc_text(of_process(pid, "maps"));
  use.has_driver = maps.find("/libcuda.so") != std::string::npos;
  if (!use.has_driver) return use;
  use.has_probe = maps.find("/libgraphproof-probe.so") != std::string::npos;
  // A forked child keeps its parent's mappings until it becomes another program.
  use.forked = maps.find(probe_folder.string() + "/") != std::string::npos;
  const std::vector<std::string> open = open_files(pid);
  use.has_device = std::ranges::any_of(
      open, [](const std::string& file) { return file.starts_with("/dev/nvidia"); });
  constexpr std::string_view kVariable = "CUDA_INJECTION64_PATH=";
  const std::string environment = proc_text(of_process(pid, "environ"));
  for (std::size_t at = 0; at < environment.size();) {
    const std::size_t end = std::min(environment.find('\0', at), environment.size());
    const std::string variable = environment.substr(at, end - at);
    if (variable.starts_with(kVariable)) use.injection = variable.substr(kVariable.size());
    at = end + 1;
  }
  if (use.injection == probe.string() && !use.forked)
    use.hidden = hidden_from(pid, {probe, probe_folder});
  return use;
}

std::string why_unwatched(const CudaUse& use, const std::string& probe) {
  if (!use.has_driver || use.forked) return "";
  if (use.hidden)
    return "it has libcuda.so.1 loaded, and " + *use.hidden +
           " does not exist where it runs: a container, or another mount namespace, hides it";
  if (use.has_probe)
    return "the probe is loaded and could not write its file; it printed why on standard error";
  if (!use.injection)
    return "it has libcuda.so.1 loaded and began without CUDA_INJECTION64_PATH: something cleared "
           "the environment";
  if (*use.injection != probe)
    return "it has libcuda.so.1 loaded and began with CUDA_INJECTION64_PATH=" + *use.injection;
  if (use.has_device)
    return "it uses a GPU without the probe: it changed CUDA_INJECTION64_PATH itself, or the "
           "library cannot be loaded there";
  return "";
}

}  // namespace graphproof::launcher
