// libnvidia-ml.so.1 for the launcher's tests: four GPUs, of which NVLink joins 0 with 1 and 2 with
// 3, and one MIG device. Their used memory in MiB is the sum of the lines of the file that
// GRAPHPROOF_FAKE_NVML names, and of the memory of processes: lines "PID MIB LISTED" of the file
// GRAPHPROOF_FAKE_NVML_PROCESSES, which count while the process lives. The driver lists those whose
// LISTED is 1, or 2 for a server of the Multi-Process Service. GRAPHPROOF_FAKE_NVML_MODE is the
// compute mode. What goes wrong are lines "KIND NUMBER GPU" of the file
// GRAPHPROOF_FAKE_NVML_TROUBLE: an "xid" is reported once, the numbers of "ecc" errors are added,
// "heat" stays.
#include <errno.h>
#include <signal.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>

namespace {
struct Memory {
  unsigned long long total, free, used;
};
struct PciInfo {
  char legacy_bus_id[16];
  unsigned domain, bus, device, device_id, subsystem_id;
  char bus_id[32];
};
struct Process {
  unsigned pid;
  unsigned long long used;
  unsigned gpu_instance, compute_instance;
};
constexpr int kGpus = 4, kNotFound = 6;
int gpus[kGpus + 1];  // the last one is the MIG device

struct Event {
  void* device;
  unsigned long long type, data;
  unsigned gpu_instance, compute_instance;
};
constexpr int kTimeout = 10, kXidEvent = 8;
int xids_told = 0;

int number_in(const char* variable) {
  const char* text = std::getenv(variable);
  return text != nullptr ? std::atoi(text) : 0;
}
int index_of(const void* device) {
  return static_cast<int>(static_cast<const int*>(device) - gpus);
}

template <class Use>
void for_each_trouble(Use&& use) {
  const char* file = std::getenv("GRAPHPROOF_FAKE_NVML_TROUBLE");
  std::ifstream in(file != nullptr ? file : "");
  std::string kind;
  int number = 0, gpu = 0;
  while (in >> kind >> number >> gpu) use(kind, number, gpu);
}

template <class Use>
void for_each_process(Use&& use) {
  const char* file = std::getenv("GRAPHPROOF_FAKE_NVML_PROCESSES");
  std::ifstream in(file != nullptr ? file : "");
  int pid = 0, mib = 0, listed = 0;
  while (in >> pid >> mib >> listed)
    if (kill(pid, 0) == 0 || errno == EPERM)
      use(static_cast<unsigned>(pid), static_cast<unsigned long long>(mib), listed);
}

unsigned long long trouble(const char* wanted, const void* device) {
  unsigned long long sum = 0;
  for_each_trouble([&](const std::string& kind, int number, int gpu) {
    if (kind == wanted && gpu == index_of(device)) sum += static_cast<unsigned long long>(number);
  });
  return sum;
}
}  // namespace

extern "C" {
int nvmlInit_v2() { return 0; }
int nvmlShutdown() { return 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** device) {
  if (index >= kGpus) return kNotFound;
  *device = &gpus[index];
  return 0;
}
int nvmlDeviceGetHandleByUUID(const char* uuid, void** device) {
  if (std::strcmp(uuid, "MIG-1") != 0) return kNotFound;
  *device = &gpus[kGpus];
  return 0;
}
int nvmlDeviceGetMemoryInfo(void*, Memory* memory) {
  const char* file = std::getenv("GRAPHPROOF_FAKE_NVML");
  unsigned long long used_mib = 0;
  std::ifstream in(file != nullptr ? file : "");
  for (unsigned long long line; in >> line;) used_mib += line;
  for_each_process([&](unsigned, unsigned long long mib, int) { used_mib += mib; });
  *memory = {1ull << 36, (1ull << 36) - (used_mib << 20), used_mib << 20};
  return 0;
}
int nvmlDeviceGetComputeRunningProcesses_v3(void*, unsigned* count, Process* processes) {
  *count = 0;
  for_each_process([&](unsigned pid, unsigned long long mib, int listed) {
    if (listed > 0) processes[(*count)++] = {pid, mib << 20, 0, 0};
  });
  return 0;
}
int nvmlSystemGetProcessName(unsigned pid, char* name, unsigned length) {
  const char* found = nullptr;
  for_each_process([&](unsigned one, unsigned long long, int listed) {
    if (one == pid) found = listed == 2 ? "/usr/bin/nvidia-cuda-mps-server" : "/usr/bin/rank";
  });
  if (found == nullptr) return kNotFound;
  std::strncpy(name, found, length);
  return 0;
}
int nvmlDeviceGetComputeMode(void*, int* mode) {
  *mode = number_in("GRAPHPROOF_FAKE_NVML_MODE");
  return 0;
}
int nvmlDeviceGetDeviceHandleFromMigDeviceHandle(void* device, void** whole) {
  *whole = &gpus[3];
  return index_of(device) == kGpus ? 0 : kNotFound;
}
int nvmlDeviceGetPciInfo_v3(void* device, PciInfo* info) {
  *info = {"", 0, 0x10 + static_cast<unsigned>(index_of(device)), 0, 0, 0, ""};
  return 0;
}
int nvmlEventSetCreate(void** set) {
  static int the_set;
  *set = &the_set;
  return 0;
}
int nvmlEventSetFree(void*) { return 0; }
int nvmlDeviceRegisterEvents(void*, unsigned long long, void*) {
  // What was reported before is left out.
  xids_told = 0;
  for_each_trouble([&](const std::string& kind, int, int) { xids_told += kind == "xid"; });
  return 0;
}
int nvmlEventSetWait_v2(void*, Event* event, unsigned) {
  int seen = 0, code = kTimeout;
  for_each_trouble([&](const std::string& kind, int number, int gpu) {
    if (kind != "xid" || seen++ != xids_told || code == 0) return;
    *event = {&gpus[gpu], kXidEvent, static_cast<unsigned long long>(number), 0, 0};
    code = 0;
  });
  if (code == 0) ++xids_told;
  return code;
}
int nvmlDeviceGetTotalEccErrors(void* device, int type, int counter, unsigned long long* count) {
  *count = type == 1 && counter == 0 ? trouble("ecc", device) : 0;
  return 0;
}
int nvmlDeviceGetCurrentClocksThrottleReasons(void* device, unsigned long long* reasons) {
  *reasons = trouble("heat", device) != 0 ? 0x40 : 0x1;
  return 0;
}
int nvmlDeviceGetP2PStatus(void* left, void* right, int, int* status) {
  *status = index_of(left) / 2 == index_of(right) / 2 ? 0 : 1;
  return 0;
}
}
