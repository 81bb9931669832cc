// The memory of a batch's GPUs: what was in use before the batch, what stays in use after it, and
// how long that is waited for.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "launcher/gpu/nvml.h"
#include "reports/record/job/context.h"

namespace graphproof::launcher {

/// Measures. The successor of a batch, where there is one, has its ranks on the same GPUs; their
/// memory is taken off.
class GpuMemory {
 public:
  // The memory of contexts of other programs on the GPU varies by less; a leak of a case is larger.
  static constexpr std::int64_t kNoise_bytes = 64 << 20;

  /// Looks at the GPUs, unless `clean` says what they hold without anything of the run. `nvml`
  /// null: nothing is measured; otherwise it must outlive this.
  GpuMemory(const Nvml* nvml, std::vector<std::string> gpus, std::vector<GpuUse> clean);

  /// What the GPUs held before the batch; empty where they are not measured.
  const std::vector<GpuUse>& before() const { return before_; }
  /// Whether the driver lists these processes on every GPU. In a container with process ids of its
  /// own it lists none of them.
  bool lists(const std::vector<int>& pids) const;
  /// Whether no GPU holds more than before the batch.
  bool is_back(const std::vector<int>& successor_pids) const;
  /// The GPUs that hold more than before, by their index within the batch. Nothing where they were
  /// not measured before it.
  std::optional<std::vector<record::Cleanup::GpuMemory>> left_in_use(
      const std::vector<int>& successor_pids) const;

 private:
  /// Empty where a GPU can't be asked.
  std::vector<GpuUse> in_use(const std::vector<int>& successor_pids) const;

  const Nvml* nvml_;
  std::vector<std::string> gpus_;
  std::vector<GpuUse> before_;
};

/// Decides how long a batch whose processes are gone waits for its memory. Without IO.
///
/// Memory that does not come back next to the successor's ranks is asked for again without them,
/// because only the driver knows whose memory is whose: the successor is ended, and its cases start
/// anew.
class GpuMemoryWait {
 public:
  // The driver frees a dead process's memory a moment after its end.
  static constexpr std::int64_t kSettle_ms = 3000;

  /// The state of the successor, where there is one.
  struct Successor {
    bool uses_device = false;  // it has been allowed to
    bool over = false;
  };
  enum class Step { wait, settled, end_successor };

  /// The processes are gone.
  void start(std::int64_t now_ms) { since_ms_ = now_ms; }
  /// `back`: GpuMemory::is_back(). `settled`: it is, or it will not be.
  Step step(bool back, const std::optional<Successor>& successor, std::int64_t now_ms);
  /// The successor was ended, so that the batch has its GPUs for itself.
  bool successor_ended() const { return successor_ended_; }

 private:
  std::int64_t since_ms_ = 0;
  bool successor_ended_ = false;
};

}  // namespace graphproof::launcher
