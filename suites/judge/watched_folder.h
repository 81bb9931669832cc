// Reads the folder of a watched run into what its checks see: watched.json, the files of the probes
// and NCCL's logs; and writes the evidence of each process as lines.
#pragma once

#include <filesystem>

#include "suites/checks/watched/job/watched_job.h"

namespace graphproof::judge {

/// Evidence may be missing or damaged: that is noted and is for the checks. Throws record::Error if
/// there is no usable watched.json: without it nothing says that this is a watched run.
checks::watched::WatchedJob load_watched_job(const std::filesystem::path& folder);

/// Writes evidence/NAME.jsonl of each process, NAME being that of its probe's file. Throws
/// record::WriteError.
void write_watched_evidence(const std::filesystem::path& folder,
                            const checks::watched::WatchedJob& job);

}  // namespace graphproof::judge
