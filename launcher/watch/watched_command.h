// Runs the command of a watched run: starts it with the standard streams of this process, passes
// signals on, detects hangs, and ends everything that it started. What the probes wrote is left to
// the judge.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "launcher/host/child.h"
#include "reports/record/watched/watched_run.h"

namespace graphproof::launcher {

/// What is run and how it is watched.
struct WatchedCommand {
  Command command;               ///< with its whole environment
  std::filesystem::path folder;  ///< of the run; the probes write into its folder `probe`
  std::string probe;  ///< the value of CUDA_INJECTION64_PATH in the command's environment
  std::int64_t hang_after_ms = 0;
  bool output_to_error = false;           ///< the command's standard output goes to standard error
  std::string container_options;          ///< container_options() of this run
  std::vector<std::string> without_cuda;  ///< programs that start nothing that uses CUDA
  std::function<void(const std::string&)> notice;  ///< what the user should know at once
};

/// Waits until the command and everything that it started has ended. Sets seconds, ending,
/// exit_code, signal, why, waiting, ras, unwatched and elsewhere of `run`, and adds to its notes.
/// The first SIGINT, SIGTERM, SIGHUP or SIGQUIT is passed on, and the command may end in its own
/// way; the second ends it at once. SIGUSR1 and SIGUSR2 are passed on. After a hang, what /proc
/// knows about the threads of each watched process of this host is in the folder `hang`, and the
/// answer of NCCL's RAS service, which may take some seconds.
void run_watched_command(const WatchedCommand& command, record::WatchedRun& run);

}  // namespace graphproof::launcher
