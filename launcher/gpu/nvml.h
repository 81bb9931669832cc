// What NVIDIA's management library knows of the GPUs: the memory in use, which GPUs are joined,
// what went wrong. The library is opened at run time, so the launcher runs the same on machines
// without it.
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

/// The memory in use on a GPU.
struct GpuUse {
  std::int64_t bytes = 0;
  std::map<int, std::int64_t> mps_servers;  // of these, what a server of CUDA's Multi-Process
                                            // Service has for itself, by process id of the server

  /// The bytes in use beyond `before`. The memory of a Multi-Process Service server that appeared
  /// in between does not count: the first program that connects starts the server, and it stays for
  /// all.
  std::int64_t more_than(const GpuUse& before) const;
};

/// The opened library. For one thread.
class Nvml {
 public:
  /// Opens the library. Null where it is absent or refuses to start.
  static std::unique_ptr<Nvml> open();
  ~Nvml();
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  /// The memory in use. Nothing if the device can't be asked.
  std::optional<GpuUse> use(const std::string& gpu) const;
  /// The bytes in use by `pids`. Nothing where the driver does not list one of them: in a container
  /// it may know other process ids, or no size.
  std::optional<std::int64_t> used_bytes(const std::string& gpu,
                                         const std::vector<int>& pids) const;
  /// The processes on `gpu`, as the driver lists them: "461 with 612 MiB, 462 with 612 MiB", "no
  /// process" or "unknown".
  std::string users(const std::string& gpu) const;
  /// Whether only one process at a time may have a context on the GPU (compute mode
  /// EXCLUSIVE_PROCESS).
  bool exclusive_process(const std::string& gpu) const;
  /// Which of `gpus` are joined by NVLink: for each the number of its island, from 0. All are one
  /// island where the driver does not know.
  std::vector<int> islands(const std::vector<std::string>& gpus) const;

  /// The place of the GPU on the PCI bus; of a MIG device, that of the whole GPU. Nothing where the
  /// driver does not know it.
  struct PciAddress {
    unsigned domain = 0, bus = 0, device = 0;
    bool operator==(const PciAddress&) const = default;
  };
  std::optional<PciAddress> pci_address(const std::string& gpu) const;

  /// From now on xids() returns what the driver reports of `gpus`; of a MIG device, what it reports
  /// of the whole GPU.
  void listen(const std::vector<std::string>& gpus);
  /// An error report of the driver.
  struct Xid {
    std::string gpu;
    int number = 0;
  };
  /// The Xids reported since the last call. Never waits.
  std::vector<Xid> xids();
  /// The number of memory errors that could not be corrected, since the driver was loaded. Nothing
  /// where the GPU does not count them.
  std::optional<std::int64_t> uncorrected_errors(const std::string& gpu) const;
  /// Whether the clocks are reduced at this moment by the GPU's own protection against heat. The
  /// gentler limit of the driver's software is no trouble.
  bool slowed_by_heat(const std::string& gpu) const;

 private:
  struct Library;
  /// A process on a GPU.
  struct User {
    int pid;
    std::optional<std::int64_t> bytes;  // nothing where the driver does not say
  };
  /// The processes on the GPU. Nothing if the device can't be asked, or has more processes than a
  /// list takes.
  std::optional<std::vector<User>> listed(const std::string& gpu) const;
  void* device(const std::string& gpu) const;
  /// The device; of a MIG device, the whole GPU.
  void* whole_device(const std::string& gpu) const;
  explicit Nvml(std::unique_ptr<Library> library);
  std::unique_ptr<Library> library_;
  void* events_ = nullptr;
  std::vector<std::pair<void*, std::string>>
      listened_;  // the device that reports, and the GPU under whose name
};

}  // namespace graphproof::launcher
