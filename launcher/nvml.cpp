#include "launcher/nvml.h"

#include <dlfcn.h>

namespace graphproof::launcher {
namespace {

// The few declarations of nvml.h that are used; the library's binary interface is stable by its own promise.
using Device = struct nvmlDevice_st*;
struct Memory {
  unsigned long long total, free, used;
};
constexpr int kSuccess = 0;

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
  if (!complete || library->init() != kSuccess) return nullptr;
  library->started = true;
  return std::unique_ptr<GpuMemory>(new GpuMemory(std::move(library)));
}

GpuMemory::GpuMemory(std::unique_ptr<Library> library) : library_(std::move(library)) {}
GpuMemory::~GpuMemory() = default;

std::optional<std::int64_t> GpuMemory::used_bytes(const std::string& gpu) const {
  Device device = nullptr;
  const bool index = !gpu.empty() && gpu.find_first_not_of("0123456789") == std::string::npos;
  const int found = index ? library_->by_index(std::stoi(gpu), &device) : library_->by_uuid(gpu.c_str(), &device);
  Memory memory{};
  if (found != kSuccess || library_->memory(device, &memory) != kSuccess) return std::nullopt;
  return static_cast<std::int64_t>(memory.used);
}

}  // namespace graphproof::launcher
