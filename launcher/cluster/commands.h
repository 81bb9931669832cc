// How agents come to other nodes: pure functions from what the user asked for to an argument
// vector. No shell is involved, and no text of a case is in any of them.
//
//   Slurm, one allocation for the run:  salloc [what the job needs] srun [one agent a node] AGENT
//   Slurm, one array task a batch:      sbatch [what the job needs] --array=0-N SCRIPT AGENT
//   named hosts:                        mpirun [one agent a host] AGENT
//   with AGENT:                         graphproof agent ...
//
// What each option is for, as seen on Slurm 22.05: srun gets --kill-on-bad-exit, because a job of
// which one task died goes on otherwise; sbatch gets --no-requeue, because Slurm by itself starts a
// job again after a node was lost; --mpi=none, because the agent is no MPI program and its ranks
// find their peers without srun. Resources are named by --gres for the job and again for the step,
// because --gpus-per-node would reach every step by the environment.
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
  std::filesystem::path run_folder, channels;  // channels/node-N is the channel of agent N
  std::filesystem::path program;               // graphproof
  std::filesystem::path rank_program;
};

/// A part of what the pilot's command prints once it has its nodes; "" where it has them from the
/// start.
std::string granted_message(const record::Cluster& options);

/// The command that starts an agent on each node. `own` is the launcher's environment; the
/// variables of the environment file override it.
launcher::Command pilot_command(const record::Cluster& options, const AgentStart& start,
                                const launcher::Environment& own);
/// The command that submits an array of `tasks` tasks with `slots` slots each; `script` is a script
/// that runs its arguments.
launcher::Command array_command(const record::Cluster& options, const AgentStart& start, int tasks,
                                int slots, const std::filesystem::path& script,
                                const launcher::Environment& own);
/// The command that runs `words` once, on one of the nodes, and shows what they print.
launcher::Command node_command(const record::Cluster& options, const AgentStart& start,
                               const launcher::Environment& own,
                               const std::vector<std::string>& words);
/// The same for the rank program's report of the software stack.
launcher::Command fingerprint_command(const record::Cluster& options, const AgentStart& start,
                                      const launcher::Environment& own);
/// The command that ends every job of the run, whatever became of the command that asked for it.
launcher::Command cancel_command(const std::string& run_id, const launcher::Environment& own);

/// The name of every job of a run.
std::string job_name(const std::string& run_id);

/// The features that Slurm is asked for: those without an architecture, and those for `arch`.
std::string constraint(const std::vector<std::string>& constraints, const std::string& arch);

/// Reads NAME=VALUE lines; empty ones and those that begin with # are left out. Throws
/// matrix::InputError with file and line.
launcher::Environment environment_file(const std::filesystem::path& file);

}  // namespace graphproof::cluster
