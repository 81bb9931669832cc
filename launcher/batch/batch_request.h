// Everything that starting a batch takes. The first part comes from the run and the cases and is
// the same on every host; the place (folders, GPUs, processes) is added by batch_host.h.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "launcher/backend/local_command.h"
#include "launcher/batch/batches.h"
#include "launcher/gpu/gpu_health.h"
#include "launcher/gpu/nvml.h"
#include "launcher/host/processes.h"
#include "reports/record/job/batch.h"
#include "reports/record/job/context.h"
#include "reports/record/run/run.h"

namespace graphproof::launcher {

/// A batch, and where it is to run.
struct BatchRequest {
  record::Batch batch;  // heartbeat_fifo, store, log_folder and mark are filled in at the start
  std::vector<Attempt> attempts;          // of batch.cases, in the same order
  std::vector<record::Limits> limits_ms;  // of the same, every phase
  Job job;  // batch_file, mark, node_folder and shm_folder are filled in at the start
  std::filesystem::path run_folder;
  std::filesystem::path node_folder, shm_folder;  // of the run; each batch gets a folder in both
  const Nvml* nvml = nullptr;                     // null: the memory of GPUs is not measured
  GpuHealth* gpu_health = nullptr;                // null: trouble of GPUs is not heard of
  const ProcessTable* processes = nullptr;
  std::optional<record::Infra> refused;  // why it is not even started: each case then ends infra.*
  std::string launcher = "local";        // the launcher backend that the contexts name
  bool prestarted = false;         // warm start: the ranks are started now and wait for begin()
  std::string predecessor;         // the batch that has its slots until then; "" unless prestarted
  std::vector<GpuUse> clean_gpus;  // what its GPUs hold without anything of the run; empty: they
                                   // are looked at before the start
};

/// The request that runs `group` as batch `name`, without a place. `run` gives device, seed and the
/// limits of cases that have none of their own.
BatchRequest batch_request(const record::Run& run, const std::filesystem::path& run_folder,
                           const CaseGroup& group, const std::string& name);

/// The part of a case's context that is known before its ranks report anything.
record::Context context_of(const BatchRequest& request, std::size_t index);

}  // namespace graphproof::launcher
