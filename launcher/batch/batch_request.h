// What starting a batch takes, from the run and the cases: the part that no host knows better.
// Whoever starts it adds the place: folders, GPUs, processes.
#pragma once

#include <filesystem>
#include <string>

#include "launcher/batch/batch_run.h"
#include "launcher/batch/batches.h"
#include "reports/record/run/run.h"

namespace graphproof::launcher {

/// `run` gives device, seed and the limits of cases that have no own; `name` the batch's.
BatchRequest batch_request(const record::Run& run, const std::filesystem::path& run_folder,
                           const CaseGroup& group, const std::string& name);

}  // namespace graphproof::launcher
