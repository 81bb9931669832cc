#include "launcher/doctor/doctor.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <set>
#include <sstream>
#include <system_error>

#include "launcher/gpu/nvml.h"
#include "launcher/host/child.h"
#include "launcher/host/disk_floor.h"
#include "launcher/host/leftovers.h"
#include "launcher/host/processes.h"

namespace graphproof::launcher {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kMiB = 1 << 20, kGiB = 1 << 30;
// The logs and the evidence of a thousand cases.
constexpr std::int64_t kDisk_bytes = kGiB;
// A rank with LibTorch loaded uses 300 MiB, and the models are small.
constexpr std::int64_t kMemoryPerSlot_bytes = 512 * kMiB;
// The buffers of Open MPI and NCCL between two ranks of a host.
constexpr std::int64_t kShmPerSlot_bytes = 32 * kMiB;
// NCCL registers buffers of this size, which the InfiniBand driver locks.
constexpr std::int64_t kLocked_bytes = 64 * kMiB;
// A rank with its libraries and sockets has hundreds of descriptors open.
constexpr std::int64_t kOpenFiles = 1024;
// The driver itself uses less than this on an idle GPU.
constexpr std::int64_t kGpuUsed_bytes = kGiB;
constexpr std::int64_t kLoader_ms = 10000;
// A rank that loads LibTorch, makes a context and computes one step takes seconds.
constexpr std::int64_t kStep_ms = 60000;

std::optional<std::int64_t> free_bytes(const fs::path& folder) {
  struct statvfs facts;
  if (statvfs(folder.c_str(), &facts) != 0) return std::nullopt;
  return static_cast<std::int64_t>(facts.f_bavail) * static_cast<std::int64_t>(facts.f_frsize);
}

std::optional<std::int64_t> memory_free_bytes() {
  std::istringstream lines(proc_text("/proc/meminfo"));
  for (std::string key, unit; std::getline(lines, key);) {
    std::istringstream words(key);
    std::int64_t kib = 0;
    if (words >> key >> kib >> unit && key == "MemAvailable:") return kib * 1024;
  }
  return std::nullopt;
}

std::optional<std::int64_t> limit_of(int resource) {
  struct rlimit limit;
  if (getrlimit(static_cast<__rlimit_resource>(resource), &limit) != 0) return std::nullopt;
  return limit.rlim_cur == RLIM_INFINITY ? -1 : static_cast<std::int64_t>(limit.rlim_cur);
}

std::string mib(const std::optional<std::int64_t>& bytes) {
  return bytes ? std::to_string(*bytes / kMiB) + " MiB" : "not known";
}

Finding at_least(const std::string& check, const std::optional<std::int64_t>& got,
                 std::int64_t want, bool bytes, Health otherwise, const std::string& why,
                 const std::string& next) {
  const auto text = [&](std::int64_t value) {
    return value < 0 ? std::string("no limit") : bytes ? mib(value) : std::to_string(value);
  };
  const bool enough = !got || *got < 0 || *got >= want;
  return {check,
          enough ? Health::ok : otherwise,
          got ? text(*got) : "not known",
          text(want) + " or more",
          why,
          enough ? "" : next};
}

Finding none_of(const std::string& check, const std::vector<std::string>& got, Health otherwise,
                const std::string& want, const std::string& why, const std::string& next) {
  std::string text;
  for (const std::string& one : got) text += (text.empty() ? "" : "; ") + one;
  return {check,
          got.empty() ? Health::ok : otherwise,
          got.empty() ? "none" : text,
          want,
          why,
          got.empty() ? "" : next};
}

}  // namespace

std::vector<std::string> folder_faults(const fs::path& folder) {
  std::vector<std::string> faults;
  const fs::path probe = folder / (std::string(kFolderProbe) + std::to_string(getpid()));
  const auto open_probe = [&] {
    return open(probe.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  };
  const int one = open_probe(), other = open_probe();
  if (one < 0 || other < 0) {
    faults.push_back("no file can be made: " + std::string(std::strerror(errno)));
  } else {
    if (flock(one, LOCK_EX | LOCK_NB) != 0)
      faults.push_back("no lock: " + std::string(std::strerror(errno)));
    else if (flock(other, LOCK_EX | LOCK_NB) == 0)
      faults.push_back("a lock that a second opener gets too");
    const bool written =
        write(one, "a\n", 2) == 2 && write(other, "b\n", 2) == 2 && write(one, "c\n", 2) == 2;
    if (!written || proc_text(probe) != "a\nb\nc\n")
      faults.push_back("appends of two openers overwrite each other");
    if (fsync(one) != 0) faults.push_back("no fsync: " + std::string(std::strerror(errno)));
  }
  const fs::path renamed = probe.string() + ".new";
  const int fresh = open(renamed.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  const bool made = fresh >= 0 && write(fresh, "new", 3) == 3;
  if (made && (rename(renamed.c_str(), probe.c_str()) != 0 || proc_text(probe) != "new"))
    faults.push_back("a rename that does not replace");
  for (const int descriptor : {one, other, fresh})
    if (descriptor >= 0) close(descriptor);
  unlink(probe.c_str());
  unlink(renamed.c_str());
  return faults;
}

std::vector<std::string> loaded_libraries(const fs::path& program) {
  Environment environment = own_environment();
  environment["LD_TRACE_LOADED_OBJECTS"] = "1";
  std::set<std::string> found;
  try {
    std::istringstream lines(run_to_end({{program}, environment}, kLoader_ms).out);
    for (std::string name, arrow, path, line; std::getline(lines, line);) {
      std::istringstream words(line);
      if (words >> name >> arrow >> path && path.starts_with("/")) found.insert(path);
    }
  } catch (const std::system_error&) {
    // A missing program is reported by another check.
  }
  return {found.begin(), found.end()};
}

RankLibraries rank_libraries(const fs::path& rank_program) {
  RankLibraries libraries;
  std::set<std::string> files;
  const auto add = [&files](const std::string& path) {
    std::error_code error;
    const fs::path file = fs::canonical(path, error);
    if (!error && fs::is_regular_file(file, error)) files.insert(file);
  };
  for (const std::string& path : loaded_libraries(rank_program)) add(path);
  try {
    const Output output = run_to_end({{rank_program, "--libraries"}, own_environment()}, kStep_ms);
    std::istringstream lines(output.out);
    for (std::string line; std::getline(lines, line);)
      if (line.starts_with("/")) add(line);
    if (output.timed_out)
      libraries.incomplete = "no answer in " + std::to_string(kStep_ms / 1000) + " s";
    else if (output.exit != Exit{})
      libraries.incomplete = (output.exit.signalled ? "signal " : "exit code ") +
                             std::to_string(output.exit.value) + " of " +
                             rank_program.filename().string() + " --libraries";
  } catch (const std::system_error& error) {
    libraries.incomplete = error.what();
  }
  libraries.paths.assign(files.begin(), files.end());
  return libraries;
}

HostFacts look_at_host(const fs::path& folder, const std::string& device, int slots,
                       const std::vector<std::string>& gpus, const fs::path& rank_program) {
  HostFacts facts;
  char host[256] = "";
  gethostname(host, sizeof host - 1);
  facts.host = host;
  facts.device = device;
  facts.slots = slots;
  facts.folder = folder;
  facts.disk_free_bytes = free_bytes(folder);
  facts.memory_free_bytes = memory_free_bytes();
  facts.shm_free_bytes = free_bytes("/dev/shm");
  facts.locked_memory_bytes = limit_of(RLIMIT_MEMLOCK);
  facts.open_files = limit_of(RLIMIT_NOFILE);
  facts.starter = !find_program("mpirun", own_environment()).empty();
  if (!rank_program.empty())
    for (const std::string& path : loaded_libraries(rank_program))
      if (fs::path(path).filename().string().starts_with("libnccl.so"))
        facts.nccl_libraries.push_back(path);
  const std::string mark = std::string(kMarkVariable) + "=";
  for (const Process& process : running_processes()) {
    if (process.parent != 1)
      continue;  // processes of a run that still goes on are children of its starters
    const std::string environment = proc_text("/proc/" + std::to_string(process.pid) + "/environ");
    if (environment.starts_with(mark) ||
        environment.find(std::string(1, '\0') + mark) != std::string::npos)
      facts.marked_processes.push_back(named({process}).front());
  }
  facts.folder_faults = folder_faults(folder);
  if (const auto nvml = gpus.empty() ? nullptr : Nvml::open())
    for (const std::string& gpu : gpus) {
      const auto use = nvml->use(gpu);
      facts.gpus.push_back({.name = gpu,
                            .used_bytes = use ? std::optional(use->bytes) : std::nullopt,
                            .exclusive_process = nvml->exclusive_process(gpu),
                            .mps = use && !use->mps_servers.empty(),
                            .uncorrected_errors = nvml->uncorrected_errors(gpu).value_or(0),
                            .slowed_by_heat = nvml->slowed_by_heat(gpu)});
    }
  return facts;
}

HostFacts look_before_cases(const fs::path& folder, const std::string& device, int slots,
                            const std::vector<std::string>& gpus, const fs::path& rank_program) {
  const bool cuda = device == "cuda";
  HostFacts facts = look_at_host(folder, device, slots, gpus, cuda ? rank_program : fs::path());
  if (cuda && gpus.size() > 1)
    facts.all_reduce = try_all_reduce(rank_program, device, static_cast<int>(gpus.size()), gpus);
  return facts;
}

std::vector<Finding> examine(const HostFacts& facts) {
  const bool cuda = facts.device == "cuda";
  std::vector<Finding> findings = {
      none_of("run_folder", facts.folder_faults, Health::failure,
              "locks, appends and renames that hold between processes",
              "the journal and the one-launcher rule rest on them",
              "use a folder on another file system: --run-dir"),
      at_least(
          "disk", facts.disk_free_bytes, kDisk_bytes, true,
          facts.disk_free_bytes.value_or(0) < kDiskFloor_bytes ? Health::failure : Health::warning,
          "evidence and logs go there; a run stops at " + std::to_string(kDiskFloor_bytes / kMiB) +
              " MiB",
          "free space in " + facts.folder.string()),
      at_least("memory", facts.memory_free_bytes, facts.slots * kMemoryPerSlot_bytes, true,
               Health::warning, "a rank with LibTorch loaded holds 300 MiB",
               "end other programs, or run fewer ranks"),
      at_least("shared_memory", facts.shm_free_bytes, facts.slots * kShmPerSlot_bytes, true,
               Health::warning,
               "ranks of a host exchange through /dev/shm; in containers it has 64 MiB",
               "start the container with --shm-size=1g"),
      at_least("open_files", facts.open_files, kOpenFiles, false, Health::warning,
               "each rank opens hundreds of files and sockets", "ulimit -n 65536"),
      none_of("leftover_processes", facts.marked_processes, Health::warning,
              "none of an earlier run", "they use memory, and disturb the times of cases",
              "graphproof resume ends those of its run; otherwise end them"),
  };
  if (facts.bad_versions)
    findings.push_back(none_of("known_bad_versions", *facts.bad_versions, Health::warning,
                               "none that is known to be bad for a use of graphs",
                               "the use that each sentence names fails with them; others do not",
                               "watch and check say whether a program has that use"));
  if (facts.all_reduce) {
    const auto& [got, fault] = *facts.all_reduce;
    findings.push_back({"all_reduce", got ? Health::ok : Health::failure,
                        got ? to_text(*got) : fault, "a right sum over all slots",
                        "no case of several ranks can pass without it",
                        got ? "" : "run it again with NCCL_DEBUG=INFO: graphproof doctor"});
  }
  if (!cuda) {
    // Ranks on GPUs need no MPI.
    findings.push_back({"starter", facts.starter ? Health::ok : Health::failure,
                        facts.starter ? "mpirun" : "no mpirun in PATH", "mpirun",
                        "it starts several ranks of the simulated device",
                        facts.starter ? "" : "install Open MPI, or put its mpirun into PATH"});
    return findings;
  }
  findings.push_back(at_least("locked_memory", facts.locked_memory_bytes, kLocked_bytes, true,
                              Health::warning, "InfiniBand locks the buffers that NCCL registers",
                              "ulimit -l unlimited"));
  const bool one = facts.nccl_libraries.size() <= 1;
  std::string libraries;
  for (const std::string& library : facts.nccl_libraries)
    libraries += (libraries.empty() ? "" : ", ") + library;
  findings.push_back({"one_libnccl", one ? Health::ok : Health::failure,
                      libraries.empty() ? "loaded by PyTorch at run time" : libraries,
                      "one libnccl", "two of them in a process each have their own communicators",
                      one ? "" : "take the other's folder out of LD_LIBRARY_PATH"});
  for (const HostFacts::Gpu& gpu : facts.gpus) {
    const bool idle = !gpu.used_bytes || *gpu.used_bytes < kGpuUsed_bytes;
    findings.push_back(
        {"gpu_" + gpu.name + "_memory", idle ? Health::ok : Health::warning,
         mib(gpu.used_bytes) + " in use",
         "less than " + std::to_string(kGpuUsed_bytes / kMiB) + " MiB in use",
         "another program runs there",
         idle ? "" : "nvidia-smi shows which; CUDA_VISIBLE_DEVICES chooses other GPUs"});
    std::vector<std::string> ills;
    if (gpu.uncorrected_errors > 0)
      ills.push_back(std::to_string(gpu.uncorrected_errors) +
                     " memory errors that could not be corrected");
    if (gpu.slowed_by_heat) ills.push_back("slowed down by heat");
    findings.push_back(
        none_of("gpu_" + gpu.name + "_health", ills, Health::warning,
                "none since the driver was loaded", "cases that meet such trouble end infra.gpu",
                "reset it or have it looked after; CUDA_VISIBLE_DEVICES chooses other GPUs"));
    if (gpu.mps)
      findings.push_back(
          {"gpu_" + gpu.name + "_mps", Health::ok, "a server of the Multi-Process Service", "any",
           "ranks that share the GPU (--ranks-per-gpu) run at the same time and not in turns", ""});
    if (gpu.exclusive_process)
      findings.push_back({"gpu_" + gpu.name + "_mode", Health::ok, "exclusive process", "any",
                          "ranks are then never started before their turn", ""});
  }
  return findings;
}

std::vector<std::string> notable(const std::vector<Finding>& findings) {
  std::vector<std::string> lines;
  for (const Finding& one : findings)
    if (one.health != Health::ok)
      lines.push_back(one.check + ": " + one.got + "; want " + one.want + "; next: " + one.next);
    else if (one.check == "all_reduce")
      lines.push_back(one.check + ": " + one.got);
  return lines;
}

Health worst(const std::vector<Finding>& findings) {
  Health health = Health::ok;
  for (const Finding& finding : findings) health = std::max(health, finding.health);
  return health;
}

std::string_view name(Health health) {
  static constexpr std::string_view kNames[] = {"ok", "warning", "failure"};
  return kNames[static_cast<int>(health)];
}

nlohmann::ordered_json to_json(const HostFacts& facts, const std::vector<Finding>& findings) {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const Finding& one : findings)
    rows.push_back({{"check", one.check},
                    {"health", name(one.health)},
                    {"got", one.got},
                    {"want", one.want},
                    {"why", one.why},
                    {"next", one.next}});
  return {{"schema", "graphproof-doctor/1"}, {"host", facts.host},
          {"device", facts.device},          {"slots", facts.slots},
          {"health", name(worst(findings))}, {"findings", std::move(rows)}};
}

}  // namespace graphproof::launcher
