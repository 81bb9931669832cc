// How agents come to other nodes: pure functions from what the user asked for to an argument
// vector. No shell in between, and no text of a case in any of them.
//
// Slurm, one allocation for the whole run: salloc [what the job needs] srun [one agent a node]
// graphproof agent ... Slurm, one array task a batch:           sbatch [the same] --array=0-N
// SCRIPT graphproof agent ... named hosts:                             mpirun [one agent a host]
// graphproof agent ...
//
// What each option is for, as seen on Slurm 22.05: srun's --kill-on-bad-exit, because a job whose
// one task died goes on otherwise; sbatch's --no-requeue, because Slurm starts a job again by
// itself after a node was lost; --mpi=none, because the agent is no MPI program and the ranks below
// it find their peers without srun; resources are named by --gres for the job and again for the
// step, because --gpus-per-node travels to every step by environment.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "launcher/host/child.h"
#include "reports/record/job/cluster.h"

namespace graphproof::cluster {

/// An agent and where it works.
struct AgentStart {
  std::string run_id;
  std::string device;                          // sim, cuda
  std::filesystem::path run_folder, channels;  // channels/node-N is that of the Nth agent
  std::filesystem::path program;               // graphproof
  std::filesystem::path rank_program;
};

/// In what the pilot's command prints once it has its nodes; "" where it has them from the start.
std::string said_when_granted(const record::Cluster& options);

/// `own` is the launcher's environment; the environment file's variables win over it.
launcher::Command pilot_command(const record::Cluster& options, const AgentStart& start,
                                const launcher::Environment& own);
/// `slots` of each task, `tasks` of them; `script` is one that runs its arguments.
launcher::Command array_command(const record::Cluster& options, const AgentStart& start, int tasks,
                                int slots, const std::filesystem::path& script,
                                const launcher::Environment& own);
/// The rank program's own report of the stack, on one of the nodes.
launcher::Command fingerprint_command(const record::Cluster& options, const AgentStart& start,
                                      const launcher::Environment& own);
/// Ends every job of the run, whatever became of the command that asked for it.
launcher::Command cancel_command(const std::string& run_id, const launcher::Environment& own);

/// Every job of a run has this name.
std::string job_name(const std::string& run_id);

/// The features that Slurm is asked for: those without an architecture, and those of `arch`.
std::string constraint(const std::vector<std::string>& constraints, const std::string& arch);

/// NAME=VALUE lines; empty ones and those that begin with # are left out. Throws matrix::InputError
/// with file and line.
launcher::Environment environment_file(const std::filesystem::path& file);

}  // namespace graphproof::cluster
