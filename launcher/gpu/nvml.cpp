#include "launcher/gpu/nvml.h"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <string_view>

namespace graphproof::launcher {
namespace {

// The few declarations of nvml.h that are used. NVIDIA promises that the library's binary interface
// is stable.
using NvmlDevice = struct nvmlDevice_st*;
struct Memory {
  unsigned long long total, free, used;
};
struct ProcessInfo {  // nvmlProcessInfo_v2
  unsigned pid;
  unsigned long long used_bytes;
  unsigned gpu_instance, compute_instance;
};
struct EventData {
  NvmlDevice device;
  unsigned long long type, data;  // of an Xid event: its number
  unsigned gpu_instance, compute_instance;
};
struct PciInfo {  // nvmlPciInfo_t of nvmlDeviceGetPciInfo_v3
  char legacy_bus_id[16];
  unsigned domain, bus, device, device_id, subsystem_id;
  char bus_id[32];
};
constexpr unsigned long long kNotAvailable = ~0ull;
constexpr int kSuccess = 0, kExclusiveProcess = 3, kP2pNvlink = 2, kP2pOk = 0, kUncorrected = 1,
              kVolatile = 0;
constexpr unsigned long long kXidEvent = 8, kHardwareHeat = 0x40;
// The bound keeps a GPU that reports without end from holding the loop.
constexpr int kEventsAtOnce = 64;

template <class Function>
bool look_up(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  return function != nullptr;
}

}  // namespace

struct Nvml::Library {
  ~Library() {
    if (shutdown != nullptr && started) shutdown();
    if (handle != nullptr) dlclose(handle);
  }
  void* handle = nullptr;
  bool started = false;
  int (*init)() = nullptr;
  int (*shutdown)() = nullptr;
  int (*by_index)(unsigned, NvmlDevice*) = nullptr;
  int (*by_uuid)(const char*, NvmlDevice*) = nullptr;
  int (*memory)(NvmlDevice, Memory*) = nullptr;
  // Not every driver has these functions.
  int (*processes)(NvmlDevice, unsigned*, ProcessInfo*) = nullptr;
  int (*process_name)(unsigned, char*, unsigned) = nullptr;
  int (*compute_mode)(NvmlDevice, int*) = nullptr;
  int (*p2p_status)(NvmlDevice, NvmlDevice, int, int*) = nullptr;
  int (*whole_device)(NvmlDevice, NvmlDevice*) = nullptr;
  int (*new_events)(void**) = nullptr;
  int (*free_events)(void*) = nullptr;
  int (*register_events)(NvmlDevice, unsigned long long, void*) = nullptr;
  int (*wait_for_event)(void*, EventData*, unsigned) = nullptr;
  int (*ecc_errors)(NvmlDevice, int, int, unsigned long long*) = nullptr;
  int (*clock_limits)(NvmlDevice, unsigned long long*) = nullptr;
  int (*pci_info)(NvmlDevice, PciInfo*) = nullptr;
};

std::unique_ptr<Nvml> Nvml::open() {
  auto library = std::make_unique<Library>();
  library->handle = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library->handle == nullptr) return nullptr;
  const bool complete =
      look_up(library->handle, "nvmlInit_v2", library->init) &&
      look_up(library->handle, "nvmlShutdown", library->shutdown) &&
      look_up(library->handle, "nvmlDeviceGetHandleByIndex_v2", library->by_index) &&
      look_up(library->handle, "nvmlDeviceGetHandleByUUID", library->by_uuid) &&
      look_up(library->handle, "nvmlDeviceGetMemoryInfo", library->memory);
  look_up(library->handle, "nvmlDeviceGetComputeRunningProcesses_v3", library->processes);
  look_up(library->handle, "nvmlSystemGetProcessName", library->process_name);
  look_up(library->handle, "nvmlDeviceGetComputeMode", library->compute_mode);
  look_up(library->handle, "nvmlDeviceGetP2PStatus", library->p2p_status);
  look_up(library->handle, "nvmlDeviceGetDeviceHandleFromMigDeviceHandle", library->whole_device);
  look_up(library->handle, "nvmlDeviceGetPciInfo_v3", library->pci_info);
  look_up(library->handle, "nvmlEventSetCreate", library->new_events);
  look_up(library->handle, "nvmlEventSetFree", library->free_events);
  look_up(library->handle, "nvmlDeviceRegisterEvents", library->register_events);
  look_up(library->handle, "nvmlEventSetWait_v2", library->wait_for_event);
  look_up(library->handle, "nvmlDeviceGetTotalEccErrors", library->ecc_errors);
  // Looked up by its old name, which newer libraries keep.
  look_up(library->handle, "nvmlDeviceGetCurrentClocksThrottleReasons", library->clock_limits);
  if (!complete || library->init() != kSuccess) return nullptr;
  library->started = true;
  return std::unique_ptr<Nvml>(new Nvml(std::move(library)));
}

Nvml::Nvml(std::unique_ptr<Library> library) : library_(std::move(library)) {}
Nvml::~Nvml() {
  if (events_ != nullptr && library_->free_events != nullptr) library_->free_events(events_);
}

void* Nvml::device(const std::string& gpu) const {
  NvmlDevice device = nullptr;
  const bool index = !gpu.empty() && gpu.find_first_not_of("0123456789") == std::string::npos;
  const int found = index ? library_->by_index(static_cast<unsigned>(std::stoi(gpu)), &device)
                          : library_->by_uuid(gpu.c_str(), &device);
  return found == kSuccess ? device : nullptr;
}

std::int64_t GpuUse::more_than(const GpuUse& before) const {
  std::int64_t more = bytes - before.bytes;
  for (const auto& [pid, own] : mps_servers)
    if (!before.mps_servers.contains(pid)) more -= own;
  return more;
}

std::optional<GpuUse> Nvml::use(const std::string& gpu) const {
  const auto handle = static_cast<NvmlDevice>(device(gpu));
  Memory memory{};
  if (handle == nullptr || library_->memory(handle, &memory) != kSuccess) return std::nullopt;
  GpuUse use{.bytes = static_cast<std::int64_t>(memory.used), .mps_servers = {}};
  if (library_->process_name == nullptr) return use;
  for (const User& user : listed(gpu).value_or(std::vector<User>())) {
    std::array<char, 256> name{};
    if (!user.bytes || library_->process_name(static_cast<unsigned>(user.pid), name.data(),
                                              name.size() - 1) != kSuccess)
      continue;
    if (std::string_view(name.data()).ends_with("nvidia-cuda-mps-server"))
      use.mps_servers[user.pid] = *user.bytes;
  }
  return use;
}

std::optional<std::vector<Nvml::User>> Nvml::listed(const std::string& gpu) const {
  const auto handle = static_cast<NvmlDevice>(device(gpu));
  if (handle == nullptr || library_->processes == nullptr) return std::nullopt;
  // With more processes than this on one GPU, it is not known whose memory is whose.
  std::array<ProcessInfo, 256> infos{};
  unsigned count = infos.size();
  if (library_->processes(handle, &count, infos.data()) != kSuccess) return std::nullopt;
  std::vector<User> users;
  for (unsigned i = 0; i < count; ++i) {
    users.push_back({static_cast<int>(infos[i].pid), std::nullopt});
    if (infos[i].used_bytes != kNotAvailable)
      users.back().bytes = static_cast<std::int64_t>(infos[i].used_bytes);
  }
  return users;
}

std::optional<std::int64_t> Nvml::used_bytes(const std::string& gpu,
                                             const std::vector<int>& pids) const {
  std::optional<std::int64_t> bytes;
  for (const User& user : listed(gpu).value_or(std::vector<User>())) {
    const bool ours = std::find(pids.begin(), pids.end(), user.pid) != pids.end();
    if (ours && user.bytes) bytes = bytes.value_or(0) + *user.bytes;
  }
  return bytes;
}

std::string Nvml::users(const std::string& gpu) const {
  const auto users = listed(gpu);
  if (!users) return "unknown";
  std::string text;
  for (const User& user : *users)
    text += (text.empty() ? "" : ", ") + std::to_string(user.pid) + " with " +
            (user.bytes ? std::to_string(*user.bytes >> 20) + " MiB" : "unknown memory");
  return text.empty() ? "no process" : text;
}

bool Nvml::exclusive_process(const std::string& gpu) const {
  const auto handle = static_cast<NvmlDevice>(device(gpu));
  int mode = 0;
  return handle != nullptr && library_->compute_mode != nullptr &&
         library_->compute_mode(handle, &mode) == kSuccess && mode == kExclusiveProcess;
}

std::vector<int> Nvml::islands(const std::vector<std::string>& gpus) const {
  std::vector<int> islands(gpus.size(), 0);
  if (library_->p2p_status == nullptr) return islands;
  std::iota(islands.begin(), islands.end(), 0);
  for (std::size_t left = 0; left < gpus.size(); ++left)
    for (std::size_t right = left + 1; right < gpus.size(); ++right) {
      const auto one = static_cast<NvmlDevice>(device(gpus[left])),
                 other = static_cast<NvmlDevice>(device(gpus[right]));
      int status = kP2pOk;
      // An older driver that does not know must not split a machine into islands.
      if (one == nullptr || other == nullptr ||
          library_->p2p_status(one, other, kP2pNvlink, &status) != kSuccess)
        return std::vector<int>(gpus.size(), 0);
      if (status == kP2pOk)
        std::replace(islands.begin(), islands.end(), islands[right], islands[left]);
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

void* Nvml::whole_device(const std::string& gpu) const {
  const auto handle = static_cast<NvmlDevice>(device(gpu));
  NvmlDevice whole = nullptr;
  // The driver refuses this for anything but a MIG device.
  const bool part = handle != nullptr && library_->whole_device != nullptr &&
                    library_->whole_device(handle, &whole) == kSuccess;
  return part ? whole : handle;
}

std::optional<Nvml::PciAddress> Nvml::pci_address(const std::string& gpu) const {
  const auto handle = static_cast<NvmlDevice>(whole_device(gpu));
  PciInfo info{};
  if (handle == nullptr || library_->pci_info == nullptr ||
      library_->pci_info(handle, &info) != kSuccess)
    return std::nullopt;
  return PciAddress{info.domain, info.bus, info.device};
}

void Nvml::listen(const std::vector<std::string>& gpus) {
  if (library_->new_events == nullptr || library_->register_events == nullptr ||
      library_->wait_for_event == nullptr)
    return;
  if (events_ == nullptr && library_->new_events(&events_) != kSuccess) return;
  for (const std::string& gpu : gpus) {
    const auto handle = static_cast<NvmlDevice>(whole_device(gpu));
    if (handle != nullptr && library_->register_events(handle, kXidEvent, events_) == kSuccess)
      listened_.emplace_back(handle, gpu);
  }
}

std::vector<Nvml::Xid> Nvml::xids() {
  std::vector<Xid> seen;
  EventData event{};
  for (int i = 0; !listened_.empty() && i < kEventsAtOnce &&
                  library_->wait_for_event(events_, &event, 0) == kSuccess;
       ++i)
    for (const auto& [reporter, gpu] : listened_)
      if (reporter == event.device && event.type == kXidEvent)
        seen.push_back({gpu, static_cast<int>(event.data)});
  return seen;
}

std::optional<std::int64_t> Nvml::uncorrected_errors(const std::string& gpu) const {
  const auto handle = static_cast<NvmlDevice>(device(gpu));
  unsigned long long count = 0;
  if (handle == nullptr || library_->ecc_errors == nullptr ||
      library_->ecc_errors(handle, kUncorrected, kVolatile, &count) != kSuccess)
    return std::nullopt;
  return static_cast<std::int64_t>(count);
}

bool Nvml::slowed_by_heat(const std::string& gpu) const {
  const auto handle = static_cast<NvmlDevice>(device(gpu));
  unsigned long long limits = 0;
  return handle != nullptr && library_->clock_limits != nullptr &&
         library_->clock_limits(handle, &limits) == kSuccess && (limits & kHardwareHeat) != 0;
}

}  // namespace graphproof::launcher
