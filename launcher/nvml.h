// Memory in use on the GPUs, by NVIDIA's management library, which is opened at run time: the launcher runs the same on
// machines without it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace graphproof::launcher {

class GpuMemory {
 public:
  /// Null where the library is absent or refuses to start.
  static std::unique_ptr<GpuMemory> open();
  ~GpuMemory();
  GpuMemory(const GpuMemory&) = delete;
  GpuMemory& operator=(const GpuMemory&) = delete;

  /// Bytes in use on `gpu`, which is spelled as in CUDA_VISIBLE_DEVICES: an index in PCI bus order, or a UUID. Nothing
  /// if the device can't be asked.
  std::optional<std::int64_t> used_bytes(const std::string& gpu) const;

 private:
  struct Library;
  explicit GpuMemory(std::unique_ptr<Library> library);
  std::unique_ptr<Library> library_;
};

}  // namespace graphproof::launcher
