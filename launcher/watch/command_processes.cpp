#include "launcher/watch/command_processes.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
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

/// The effective user of `pid`, which everybody may see; nothing where it is gone.
std::optional<std::int64_t> user_of(int pid) {
  constexpr std::string_view kUsers = "\nUid:";
  const std::string status = proc_text(of_process(pid, "status"));
  const std::size_t at = status.find(kUsers);
  if (at == std::string::npos) return std::nullopt;
  char* effective = nullptr;
  std::strtoll(status.c_str() + at + kUsers.size(), &effective, 10);  // the real one
  return std::strtoll(effective, nullptr, 10);
}

/// Whether the kernel refuses this process a look at what `pid` has loaded.
bool may_not_look(int pid) {
  const int maps = open(of_process(pid, "maps").c_str(), O_RDONLY | O_CLOEXEC);
  if (maps < 0) return errno == EACCES || errno == EPERM;
  close(maps);
  return false;
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

std::vector<std::string> words_of(int pid) {
  const std::string text = proc_text(of_process(pid, "cmdline"));
  std::vector<std::string> words;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\0', at), text.size());
    words.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return words;
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
  // A process of this user that forbids looks, such as ssh-agent, is no program of CUDA.
  if (const auto user = user_of(pid);
      maps.empty() && user && *user != static_cast<std::int64_t>(geteuid()) && may_not_look(pid))
    use.other_user = user;
  if (!use.has_driver) return use;
  use.has_probe = maps.find("/libgraphproof-probe.so") != std::string::npos;
  // A forked child keeps its parent's mappings until it becomes another program.
  use.forked = maps.find(probe_folder.string() + "/") != std::string::npos;
  const std::vector<std::string> open = open_files(pid);
  // Programs that ask NVML about the GPUs have their devices open too, but not that of the managed
  // memory (/dev/nvidia-uvm), which cuInit opens.
  use.has_device = std::ranges::any_of(open, [](const std::string& file) {
    return file.starts_with("/dev/nvidia-uvm") || file == "/dev/dxg";
  });
  constexpr std::string_view kVariable = "CUDA_INJECTION64_PATH=";
  const std::string environment = proc_text(of_process(pid, "environ"));
  for (std::size_t at = 0; at < environment.size();) {
    const std::size_t end = std::min(environment.find('\0', at), environment.size());
    const std::string variable = environment.substr(at, end - at);
    if (variable.starts_with(kVariable)) use.injection = variable.substr(kVariable.size());
    at = end + 1;
  }
  std::error_code error;
  const fs::path mounts = fs::read_symlink(of_process(pid, "ns/mnt"), error);
  use.other_mounts = !error && mounts != fs::read_symlink("/proc/self/ns/mnt", error);
  if (use.injection == probe.string() && !use.forked)
    use.hidden = hidden_from(pid, {probe, probe_folder});
  return use;
}

Unwatched why_unwatched(const CudaUse& use, const std::string& probe,
                        const std::string& container) {
  if (use.other_user)
    return {"it runs as user " + std::to_string(*use.other_user) +
                ", so whether it uses CUDA cannot be seen",
            "start graphproof watch itself as that user or as root"};
  if (!use.has_driver || use.forked) return {};
  if (use.hidden)
    return {"it has libcuda.so.1 loaded, and " + *use.hidden +
                " does not exist where it runs: a container, or another mount namespace, hides it",
            "give the container what it lacks: docker run " + container +
                " (apptainer: --bind DIR), or start graphproof watch inside it"};
  if (use.has_probe)
    return {"the probe is loaded and could not write its file; it printed why on standard error",
            "let the user that it runs as write into the folder of the run (--run-dir)"};
  if (!use.injection && use.other_mounts)
    return {
        "it has libcuda.so.1 loaded and began without CUDA_INJECTION64_PATH, in a container or "
        "another mount namespace: its environment was not handed on",
        "hand it on: docker run " + container +
            " (apptainer: without --cleanenv, or with --env), or start graphproof watch "
            "inside it"};
  if (!use.injection)
    return {
        "it has libcuda.so.1 loaded and began without CUDA_INJECTION64_PATH: something cleared "
        "the environment",
        "let it keep the variables: `sudo --preserve-env=NAME,...`, `env -i NAME=\"$NAME\"...`, "
        "`srun --export=ALL`; graphproof watch --attach-only prints them"};
  if (*use.injection != probe)
    return {"it has libcuda.so.1 loaded and began with CUDA_INJECTION64_PATH=" + *use.injection,
            "set CUDA_INJECTION64_PATH=" + *use.injection +
                " for graphproof watch itself, whose probe then loads that library too, and no "
                "longer inside the command"};
  if (use.has_device)
    return {
        "it uses a GPU without the probe: it changed CUDA_INJECTION64_PATH itself, or the "
        "library cannot be loaded there",
        "leave the variable as it is; if nothing changes it, `ldd " + probe +
            "` where the process runs names what is missing"};
  return {};
}

bool uses_no_cuda(const std::string& name) {
  // What the first ones start is looked at as a process of its own.
  constexpr std::array<std::string_view, 12> kNames = {
      "sudo",        "su",        "doas",      "runuser", "pkexec", "fusermount",
      "fusermount3", "newuidmap", "newgidmap", "mount",   "umount", "ping"};
  return std::ranges::find(kNames, name) != kNames.end();
}

}  // namespace graphproof::launcher
