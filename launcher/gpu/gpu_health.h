// What went wrong with GPUs while cases ran on them: error reports of the driver (Xid), memory
// errors that could not be corrected, clocks cut down by heat. Whose fault an Xid is, is a table;
// what is the GPU's own makes a case infra.gpu.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "launcher/gpu/nvml.h"

namespace graphproof::launcher {

struct GpuTrouble {
  std::string gpu;
  std::string what;      // "Xid 79: it has fallen off the bus"
  bool hardware = true;  // false: programs cause it, and the case answers for what it did
};

/// Of an Xid that the table lacks nobody can say that it is the hardware's: a case is not excused
/// by it.
GpuTrouble trouble_of_xid(const std::string& gpu, int number);

class GpuHealth {
 public:
  // Asking is a handful of calls into the driver.
  static constexpr std::int64_t kLook_ms = 1000;

  /// Listens from now on. `nvml` must outlive it.
  GpuHealth(Nvml& nvml, std::vector<std::string> gpus);

  /// Asks the driver, if that was not done within kLook_ms; `at_once`: in any case.
  void look(std::int64_t now_ms, bool at_once);
  /// How many troubles there were so far, of all GPUs.
  std::size_t count() const { return seen_.size(); }
  /// Those of `gpus` from number `first` on.
  std::vector<GpuTrouble> since(std::size_t first, const std::vector<std::string>& gpus) const;

 private:
  Nvml& nvml_;
  const std::vector<std::string> gpus_;
  std::map<std::string, std::int64_t> uncorrected_;  // counted so far
  std::vector<GpuTrouble> seen_;                     // of a GPU that is hot, one a look
  std::int64_t looked_ms_ = 0;
};

}  // namespace graphproof::launcher
