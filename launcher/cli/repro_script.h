// A case as a shell script of its own: environment, batch file, mpirun. For a machine or a debugger
// where graphproof's launcher is not wanted.
#pragma once

#include <cstdint>
#include <string>

#include "launcher/backend/programs.h"
#include "reports/record/job/batch.h"
#include "reports/record/job/plan.h"

namespace graphproof::cli {

/// POSIX sh. Takes a folder as its argument, or makes one; leaves there batch.json, the ranks'
/// logs, their heartbeats and, in case/, their evidence. Ends with mpirun's exit code, or 124 when
/// the sum of the phases' limits has passed. It judges nothing. The only fixed paths in it are the
/// rank program's; `limits_ms` holds every phase.
std::string repro_script(const record::PlanLine& line, const launcher::Device& device,
                         const record::Limits& limits_ms, std::uint64_t seed);

}  // namespace graphproof::cli
