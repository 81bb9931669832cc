// What NVIDIA's management library knows of the GPUs: memory in use, who is joined with whom, what went wrong. It is opened
// at run time: the launcher runs the same on machines without it.
//
// A GPU is spelled as in CUDA_VISIBLE_DEVICES: an index in PCI bus order, or a UUID, also that of a MIG device.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace graphproof::launcher {

class GpuMemory {
 public:
  /// Null where the library is absent or refuses to start.
  static std::unique_ptr<GpuMemory> open();
  ~GpuMemory();
  GpuMemory(const GpuMemory&) = delete;
  GpuMemory& operator=(const GpuMemory&) = delete;

  /// Bytes in use on `gpu`. Nothing if the device can't be asked.
  std::optional<std::int64_t> used_bytes(const std::string& gpu) const;
  /// Those in use by `pids`. Nothing where the driver does not list one of them: in a container it sees other process ids,
  /// or is not told.
  std::optional<std::int64_t> used_bytes(const std::string& gpu, const std::vector<int>& pids) const;
  /// One process at a time may have a context there (compute mode EXCLUSIVE_PROCESS).
  bool exclusive_process(const std::string& gpu) const;
  /// Which of `gpus` are joined by NVLink: for each the number of its island, from 0. One island where nobody can tell.
  std::vector<int> islands(const std::vector<std::string>& gpus) const;

 private:
  struct Library;
  void* device(const std::string& gpu) const;
  explicit GpuMemory(std::unique_ptr<Library> library);
  std::unique_ptr<Library> library_;
};

}  // namespace graphproof::launcher
