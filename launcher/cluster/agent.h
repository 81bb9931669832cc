// The agent on a node: runs the batches that its launcher orders, as the launcher itself does on
// its own host, and reports. It is the internal verb `agent`, one per node, started by srun, sbatch
// or mpirun.
//
// It ends what it started and leaves when the launcher orders it, when a signal comes (Slurm sends
// SIGTERM before the time limit and for scancel), when its channel is revoked, and when the
// launcher has been silent for a while.
#pragma once

#include <cstdint>
#include <filesystem>

#include "launcher/host/child.h"

namespace graphproof::cluster {

// The launcher writes live.json once a second; a shared file system may show an old one for up to a
// minute.
inline constexpr std::int64_t kLauncherSilent_ms = 90000;

/// Where an agent finds its run, its orders and the rank program.
struct AgentSetup {
  std::filesystem::path run_folder, channels, rank_program;
  int slots = 1;
  std::int64_t launcher_silent_ms = kLauncherSilent_ms;
};

/// Serves the channel that `environment` names (see agent_number()), until it leaves. Returns the
/// exit code: 0 after an order to leave, 5 otherwise. Throws record::ReadError for a run, plan or
/// order that can't be read.
int serve(const AgentSetup& setup, const launcher::Environment& environment);

/// The number of this process among the agents of the run: SLURM_ARRAY_TASK_ID, SLURM_NODEID or
/// OMPI_COMM_WORLD_RANK, the first that is set. Throws record::ReadError when none is.
int agent_number(const launcher::Environment& environment);

}  // namespace graphproof::cluster
