// libnvidia-ml.so.1 for the launcher's tests: one GPU whose used memory, in MiB, is the sum of the lines of the file that
// GRAPHPROOF_FAKE_NVML names.
#include <cstdlib>
#include <fstream>

namespace {
struct Memory {
  unsigned long long total, free, used;
};
}  // namespace

extern "C" {
int nvmlInit_v2() { return 0; }
int nvmlShutdown() { return 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** device) {
  static int gpu;
  *device = &gpu;
  return index == 0 ? 0 : 2;
}
int nvmlDeviceGetHandleByUUID(const char*, void**) { return 2; }
int nvmlDeviceGetMemoryInfo(void*, Memory* memory) {
  const char* file = std::getenv("GRAPHPROOF_FAKE_NVML");
  unsigned long long used_mib = 0;
  std::ifstream in(file != nullptr ? file : "");
  for (unsigned long long line; in >> line;) used_mib += line;
  *memory = {1ull << 36, (1ull << 36) - (used_mib << 20), used_mib << 20};
  return 0;
}
}
