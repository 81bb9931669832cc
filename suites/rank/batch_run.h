// A batch file becomes evidence: every case is validated before anything is initialised; accepted
// cases then share one device, one MPI world and cached communicators.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "fixtures/device/device.h"
#include "fixtures/process/rank.h"

namespace graphproof::suites {

// Exit codes of the rank program. After a failed case the process ends, because device errors and
// failed captures may stick; the launcher starts the remaining cases in fresh processes.
inline constexpr int kExitDone = 0;
inline constexpr int kExitUsage = 2;     // batch file or command line
inline constexpr int kExitOwnFault = 6;  // this program failed outside any case
inline constexpr int kExitCaseFailed =
    10;                                  // a case could not go its whole way; its evidence says why
inline constexpr int kExitOverrun = 11;  // a teardown step did not return

struct RankProgram {
  std::string device;  // sim or cuda: what this program is built for
  std::function<std::unique_ptr<capture::Device>(int local_index)> make_device;
};

/// What a case's run is for: its arms and their evidence; or, of a case that failed, the first
/// tensor in which its graph arm differs from eager (suites/arms/divergence.h).
enum class Purpose { evidence, divergence };

/// Runs the cases of `file` on this rank and returns the exit code. May end the process itself with
/// std::_Exit where nothing may be touched any more. Throws for what is wrong before the first
/// case.
int run_batch(const RankProgram& program, const fixtures::Rank& place,
              const std::filesystem::path& file, Purpose purpose);

}  // namespace graphproof::suites
