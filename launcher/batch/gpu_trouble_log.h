// What the driver reports of a batch's GPUs while the batch runs: written to batches/B/driver.log,
// and, where it is the hardware's doing, the reason why a case ends infra.gpu.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "launcher/gpu/gpu_health.h"
#include "reports/record/job/context.h"

namespace graphproof::launcher {

/// The troubles of one batch.
class GpuTroubleLog {
 public:
  /// `health` null: nothing is heard of; otherwise it must outlive this.
  GpuTroubleLog(GpuHealth* health, std::vector<std::string> gpus, std::filesystem::path file)
      : health_(health), gpus_(std::move(gpus)), file_(std::move(file)) {}

  /// What was reported until now is not this batch's.
  void start();
  /// One round. `finished`: the contexts that are about to be handed out. They get the trouble of
  /// the hardware since the last case as `infra`, because a report belongs to the case that runs
  /// when it comes.
  void step(std::int64_t now_ms, std::vector<record::Context>& finished);

 private:
  GpuHealth* health_;
  std::vector<std::string> gpus_;
  std::filesystem::path file_;
  std::size_t seen_ = 0;            // troubles of the health's that were looked at
  std::set<std::string> hardware_;  // trouble of the GPUs themselves since the last case ended
};

}  // namespace graphproof::launcher
