// Runs a batch file and writes its evidence. All cases are validated before anything is
// initialised. Accepted cases share one device, one world and cached communicators.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "fixtures/device/device.h"
#include "fixtures/process/rank.h"
#include "reports/record/job/rank_exit.h"

namespace graphproof::suites {

// Exit codes of the rank program. The process ends after a failed case, because device errors and
// failed captures may be sticky; the launcher starts the remaining cases in new processes.
inline constexpr int kExitDone = 0;
inline constexpr int kExitUsage = 2;     // an error in the batch file or command line
inline constexpr int kExitOwnFault = 6;  // this program failed outside any case
using record::kExitCaseFailed;
inline constexpr int kExitOverrun = 11;  // a teardown step did not return

/// The device library that this program is linked with.
struct RankProgram {
  std::string device;  // sim or cuda
  std::function<std::unique_ptr<capture::Device>(int local_index)> make_device;
};

/// What a case is run for. evidence: its arms. divergence: the first tensor in which the graph arm
/// of a failed case differs from eager (suites/arms/divergence.h).
enum class Purpose { evidence, divergence };

/// Runs the cases of `file` on this rank and returns the exit code. After an error that leaves the
/// device or a library unusable, ends the process with std::_Exit. Throws for errors before the
/// first case.
int run_batch(const RankProgram& program, const fixtures::Rank& place,
              const std::filesystem::path& file, Purpose purpose);

}  // namespace graphproof::suites
