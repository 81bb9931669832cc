// A case as a shell script with its environment, batch file and mpirun command, to start it without
// the launcher of graphproof, for example under a debugger.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "launcher/backend/programs.h"
#include "reports/record/job/batch.h"
#include "reports/record/job/plan.h"

namespace graphproof::cli {

/// A program under which ranks are started.
struct RankTool {
  enum class Kind { none, gdb, compute_sanitizer, nsys };
  Kind kind = Kind::none;
  int rank = 0;         // gdb: the rank that it debugs
  std::string checker;  // compute_sanitizer: its option --tool
};
/// The programs that `tool` may be, the best first; empty for none. cuda-gdb comes before gdb on
/// GPUs.
std::vector<std::string> programs_of(const RankTool& tool, const std::string& device);

/// A script for POSIX sh. It takes a folder as its argument, or makes one, and leaves batch.json,
/// the logs and heartbeats of the ranks and, in case/, their evidence there. It judges nothing. Its
/// exit code is that of the starter of the ranks, or 124 after the sum of the limits of all phases,
/// or 127 if the tool is not in PATH. The only fixed path in it is the folder of the rank program,
/// which GRAPHPROOF_PROGRAMS replaces on a machine that has it elsewhere.
///
/// With a tool the ranks run under it. gdb debugs one rank in the terminal, and nothing ends the
/// others while it waits. compute-sanitizer and nsys take every rank, leave a file for each in the
/// folder, and have ten times the limits, because ranks are slower under them. compute-sanitizer
/// ends a rank with exit code 99 if it found an error.
///
/// REQUIRES: `limits_ms` has every phase; tool.rank is a rank of the case.
std::string repro_script(const record::PlanLine& line, const launcher::Device& device,
                         const record::Limits& limits_ms, std::uint64_t seed,
                         const RankTool& tool = {});

}  // namespace graphproof::cli
