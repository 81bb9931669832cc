// What NVIDIA's management library knows of the GPUs: memory in use, who is joined with whom, what
// went wrong. It is opened at run time: the launcher runs the same on machines without it.
//
// A GPU is spelled as in CUDA_VISIBLE_DEVICES: an index in PCI bus order, or a UUID, also that of a
// MIG device.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace graphproof::launcher {

/// What is in use on a GPU.
struct GpuUse {
  std::int64_t bytes = 0;
  std::map<int, std::int64_t> mps_servers;  // of these, what a server of CUDA's Multi-Process
                                            // Service has for itself, by process id

  /// Bytes more than `before`. A server that came in between is the machine's: the first program
  /// that connects starts it, and it stays.
  std::int64_t more_than(const GpuUse& before) const;
};

class Nvml {
 public:
  /// Null where the library is absent or refuses to start.
  static std::unique_ptr<Nvml> open();
  ~Nvml();
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  /// Nothing if the device can't be asked.
  std::optional<GpuUse> use(const std::string& gpu) const;
  /// Bytes in use by `pids`. Nothing where the driver does not list one of them: in a container it
  /// sees other process ids, or is not told.
  std::optional<std::int64_t> used_bytes(const std::string& gpu,
                                         const std::vector<int>& pids) const;
  /// Who is on `gpu`, as the driver tells: "461 with 612 MiB, 462 with 612 MiB", "no process" or
  /// "nobody knows".
  std::string users(const std::string& gpu) const;
  /// One process at a time may have a context there (compute mode EXCLUSIVE_PROCESS).
  bool exclusive_process(const std::string& gpu) const;
  /// Which of `gpus` are joined by NVLink: for each the number of its island, from 0. One island
  /// where nobody can tell.
  std::vector<int> islands(const std::vector<std::string>& gpus) const;

  /// Where it is on the PCI bus; of a MIG device, where the GPU around it is. Nothing where the
  /// driver can't tell.
  struct PciAddress {
    unsigned domain = 0, bus = 0, device = 0;
    bool operator==(const PciAddress&) const = default;
  };
  std::optional<PciAddress> pci_address(const std::string& gpu) const;

  /// From now on xids() tells what the driver reports of `gpus`; of a MIG device, what it reports
  /// of the GPU around it.
  void listen(const std::vector<std::string>& gpus);
  struct Xid {
    std::string gpu;
    int number = 0;
  };
  /// What was reported since the last call. Never waits.
  std::vector<Xid> xids();
  /// Memory errors that could not be corrected, since the driver was loaded. Nothing where the GPU
  /// does not count them.
  std::optional<std::int64_t> uncorrected_errors(const std::string& gpu) const;
  /// Its clocks are cut down at this moment, by its own protection against heat. Software's gentler
  /// limit is no trouble.
  bool slowed_by_heat(const std::string& gpu) const;

 private:
  struct Library;
  struct User {
    int pid;
    std::optional<std::int64_t> bytes;  // nothing where it is not told
  };
  /// Nothing if the device can't be asked, or has more than a list holds.
  std::optional<std::vector<User>> listed(const std::string& gpu) const;
  void* device(const std::string& gpu) const;
  /// Of a MIG device the GPU around it.
  void* whole_device(const std::string& gpu) const;
  explicit Nvml(std::unique_ptr<Library> library);
  std::unique_ptr<Library> library_;
  void* events_ = nullptr;
  std::vector<std::pair<void*, std::string>>
      listened_;  // the device that reports, and as which GPU
};

}  // namespace graphproof::launcher
