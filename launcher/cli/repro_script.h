// A case as a shell script with its environment, batch file and mpirun command, to start it without
// the launcher of graphproof, for example under a debugger.
#pragma once

#include <cstdint>
#include <string>

#include "launcher/backend/programs.h"
#include "reports/record/job/batch.h"
#include "reports/record/job/plan.h"

namespace graphproof::cli {

/// A script for POSIX sh. It takes a folder as its argument, or makes one, and leaves batch.json,
/// the logs and heartbeats of the ranks and, in case/, their evidence there. It judges nothing. Its
/// exit code is that of mpirun, or 124 after the sum of the limits of all phases. The only fixed
/// path in it is that of the rank program. REQUIRES: `limits_ms` has every phase.
std::string repro_script(const record::PlanLine& line, const launcher::Device& device,
                         const record::Limits& limits_ms, std::uint64_t seed);

}  // namespace graphproof::cli
