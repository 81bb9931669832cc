// What a host gives to the batches that run on it: private folders, GPUs and what watches them,
// CPUs near each GPU, the process table. Both the run loop, on its own host, and an agent, on its
// node, make their batch requests with it.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "launcher/batch/batch_request.h"
#include "launcher/batch/batches.h"
#include "launcher/gpu/cpus.h"
#include "launcher/gpu/gpu_health.h"
#include "launcher/gpu/nvml.h"
#include "launcher/host/host_folders.h"
#include "launcher/host/processes.h"
#include "reports/record/run/run.h"

namespace graphproof::launcher {

/// What a batch host needs to know of the run.
struct BatchHostSetup {
  std::filesystem::path run_folder;
  std::filesystem::path rank_program;
  std::vector<std::string> gpus;  // as CUDA_VISIBLE_DEVICES spells them; slot s is on GPU
                                  // s % gpus.size(); empty where no batch of this host is on one
  const ProcessTable* processes = nullptr;  // null: the host's
};

/// The host's resources for one run. They are released with it. For one thread.
class BatchHost {
 public:
  /// Makes the run's folders on this host and starts to listen to the driver. Throws
  /// std::system_error. `run` must outlive it.
  BatchHost(const record::Run& run, BatchHostSetup setup);

  /// The request that runs `group` as batch `name` on these slots of this host. `alone`: nothing
  /// else runs at the same time.
  BatchRequest request(const CaseGroup& group, const std::string& name,
                       const std::vector<int>& slots, bool alone = false) const;

  /// A GPU takes one process at a time, so ranks cannot be started while others are on it.
  bool exclusive_process() const { return exclusive_process_; }
  /// The driver's library; null where there is none or no batch is on a GPU.
  const Nvml* nvml() const { return nvml_.get(); }
  /// The GPU of a slot; "" on the simulated device.
  std::string gpu(int slot) const;

 private:
  const record::Run& run_;
  const BatchHostSetup setup_;
  const ProcessTable own_processes_;
  const HostFolders folders_;
  const std::unique_ptr<Nvml> nvml_;
  std::unique_ptr<GpuHealth> gpu_health_;
  std::vector<Cpus> cpus_;  // by GPU; empty: ranks run on any CPU
  bool exclusive_process_ = false;
};

}  // namespace graphproof::launcher
