#include "launcher/nvml.h"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <numeric>

namespace graphproof::launcher {
namespace {

// The few declarations of nvml.h that are used; the library's binary interface is stable by its own promise.
using Device = struct nvmlDevice_st*;
struct Memory {
  unsigned long long total, free, used;
};
struct ProcessInfo {  // nvmlProcessInfo_v2
  unsigned pid;
  unsigned long long used_bytes;
  unsigned gpu_instance, compute_instance;
};
constexpr unsigned long long kNotAvailable = ~0ull;
constexpr int kSuccess = 0, kExclusiveProcess = 3, kP2pNvlink = 2, kP2pOk = 0;

template <class Function>
bool look_up(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  return function != nullptr;
}

}  // namespace

struct GpuMemory::Library {
  ~Library() {
    if (shutdown != nullptr && started) shutdown();
    if (handle != nullptr) dlclose(handle);
  }
  void* handle = nullptr;
  bool started = false;
  int (*init)() = nullptr;
  int (*shutdown)() = nullptr;
  int (*by_index)(unsigned, Device*) = nullptr;
  int (*by_uuid)(const char*, Device*) = nullptr;
  int (*memory)(Device, Memory*) = nullptr;
  // Not every driver has these.
  int (*processes)(Device, unsigned*, ProcessInfo*) = nullptr;
  int (*compute_mode)(Device, int*) = nullptr;
  int (*p2p_status)(Device, Device, int, int*) = nullptr;
};

std::unique_ptr<GpuMemory> GpuMemory::open() {
  auto library = std::make_unique<Library>();
  library->handle = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library->handle == nullptr) return nullptr;
  const bool complete = look_up(library->handle, "nvmlInit_v2", library->init) &&
                        look_up(library->handle, "nvmlShutdown", library->shutdown) &&
                        look_up(library->handle, "nvmlDeviceGetHandleByIndex_v2", library->by_index) &&
                        look_up(library->handle, "nvmlDeviceGetHandleByUUID", library->by_uuid) &&
                        look_up(library->handle, "nvmlDeviceGetMemoryInfo", library->memory);
  look_up(library->handle, "nvmlDeviceGetComputeRunningProcesses_v3", library->processes);
  look_up(library->handle, "nvmlDeviceGetComputeMode", library->compute_mode);
  look_up(library->handle, "nvmlDeviceGetP2PStatus", library->p2p_status);
  if (!complete || library->init() != kSuccess) return nullptr;
  library->started = true;
  return std::unique_ptr<GpuMemory>(new GpuMemory(std::move(library)));
}

GpuMemory::GpuMemory(std::unique_ptr<Library> library) : library_(std::move(library)) {}
GpuMemory::~GpuMemory() = default;

void* GpuMemory::device(const std::string& gpu) const {
  Device device = nullptr;
  const bool index = !gpu.empty() && gpu.find_first_not_of("0123456789") == std::string::npos;
  const int found = index ? library_->by_index(static_cast<unsigned>(std::stoi(gpu)), &device) : library_->by_uuid(gpu.c_str(), &device);
  return found == kSuccess ? device : nullptr;
}

std::optional<std::int64_t> GpuMemory::used_bytes(const std::string& gpu) const {
  const auto handle = static_cast<Device>(device(gpu));
  Memory memory{};
  if (handle == nullptr || library_->memory(handle, &memory) != kSuccess) return std::nullopt;
  return static_cast<std::int64_t>(memory.used);
}

std::optional<std::int64_t> GpuMemory::used_bytes(const std::string& gpu, const std::vector<int>& pids) const {
  const auto handle = static_cast<Device>(device(gpu));
  if (handle == nullptr || library_->processes == nullptr) return std::nullopt;
  // More processes than this on one GPU: then nobody is told whose memory is whose.
  std::array<ProcessInfo, 256> infos{};
  unsigned count = infos.size();
  if (library_->processes(handle, &count, infos.data()) != kSuccess) return std::nullopt;
  std::optional<std::int64_t> bytes;
  for (unsigned i = 0; i < count; ++i) {
    const bool ours = std::find(pids.begin(), pids.end(), static_cast<int>(infos[i].pid)) != pids.end();
    if (ours && infos[i].used_bytes != kNotAvailable) bytes = bytes.value_or(0) + static_cast<std::int64_t>(infos[i].used_bytes);
  }
  return bytes;
}

bool GpuMemory::exclusive_process(const std::string& gpu) const {
  const auto handle = static_cast<Device>(device(gpu));
  int mode = 0;
  return handle != nullptr && library_->compute_mode != nullptr && library_->compute_mode(handle, &mode) == kSuccess &&
         mode == kExclusiveProcess;
}

std::vector<int> GpuMemory::islands(const std::vector<std::string>& gpus) const {
  std::vector<int> islands(gpus.size(), 0);
  if (library_->p2p_status == nullptr) return islands;
  std::iota(islands.begin(), islands.end(), 0);
  for (std::size_t left = 0; left < gpus.size(); ++left)
    for (std::size_t right = left + 1; right < gpus.size(); ++right) {
      const auto one = static_cast<Device>(device(gpus[left])), other = static_cast<Device>(device(gpus[right]));
      int status = kP2pOk;
      // An older driver that can't say must not take machines apart.
      if (one == nullptr || other == nullptr || library_->p2p_status(one, other, kP2pNvlink, &status) != kSuccess)
        return std::vector<int>(gpus.size(), 0);
      if (status == kP2pOk) std::replace(islands.begin(), islands.end(), islands[right], islands[left]);
    }
  std::vector<int> known;
  for (int& island : islands) {
    const auto found = std::find(known.begin(), known.end(), island);
    const auto number = static_cast<int>(found - known.begin());
    if (found == known.end()) known.push_back(island);
    island = number;
  }
  return islands;
}

}  // namespace graphproof::launcher
