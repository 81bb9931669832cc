// What goes wrong with GPUs while cases run on them: error reports of the driver (Xid), memory
// errors that could not be corrected, clocks that are reduced because of heat. A table says whether
// the hardware or a program causes an Xid; trouble of the hardware makes a case infra.gpu.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "launcher/gpu/nvml.h"

namespace graphproof::launcher {

/// One report of trouble.
struct GpuTrouble {
  std::string gpu;
  std::string what;      // "Xid 79: it has fallen off the bus"
  bool hardware = true;  // false: a program causes it, and the case answers for what it did
};

/// The trouble that an Xid stands for. An Xid that is not in the table counts as caused by a
/// program: it does not excuse a case.
GpuTrouble trouble_of_xid(const std::string& gpu, int number);

/// Collects the troubles of these GPUs, for all batches of a host.
class GpuHealth {
 public:
  // Asking takes a few calls into the driver.
  static constexpr std::int64_t kLook_ms = 1000;

  /// Listens to the driver from now on. `nvml` must outlive it.
  GpuHealth(Nvml& nvml, std::vector<std::string> gpus);

  /// Asks the driver, if that was not done within kLook_ms; `at_once`: in any case.
  void look(std::int64_t now_ms, bool at_once);
  /// The number of troubles so far, of all GPUs.
  std::size_t count() const { return seen_.size(); }
  /// The troubles of `gpus` from number `first` on.
  std::vector<GpuTrouble> since(std::size_t first, const std::vector<std::string>& gpus) const;

 private:
  Nvml& nvml_;
  const std::vector<std::string> gpus_;
  std::map<std::string, std::int64_t> uncorrected_;  // by GPU: errors counted so far
  std::vector<GpuTrouble> seen_;                     // a GPU that is hot adds one a look
  std::int64_t looked_ms_ = 0;
};

}  // namespace graphproof::launcher
