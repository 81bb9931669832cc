// How a batch is started on this host: a pure function from a job to a command. How agents come to
// other hosts and nodes is in cluster/commands.h, by functions of the same kind.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "launcher/host/child.h"

namespace graphproof::launcher {

struct Job {
  int world_size = 1;
  std::string device;             // sim | cuda
  std::vector<std::string> gpus;  // as CUDA_VISIBLE_DEVICES spells them, one per rank, or fewer,
                                  // which the ranks share in turn; empty on sim
  std::vector<int> cpus;          // that the ranks share, and nobody else; empty: any
  std::filesystem::path program;  // the rank program; graphproof-start is beside it
  std::vector<std::string> switches;  // of it, before the batch file
  std::filesystem::path batch_file;
  std::filesystem::path node_folder;  // local to this host; mpirun's own files go there
  std::filesystem::path
      shm_folder;  // below /dev/shm; shared memory of MPI goes there, so that leftovers are ours
  std::string mark;
  Environment
      environment;  // what the cases' axes ask for: wins over everything but the lease and the mark
};

/// Whether the ranks find each other without MPI: on GPUs by NCCL, and one rank has nobody to find.
/// Only tensors of several ranks of the simulated device travel over MPI.
bool without_mpi(const Job& job);

/// Starts the ranks of `job` on this host: through mpirun, or without MPI through graphproof-start,
/// which listens on no port. `own` is the launcher's environment, which the ranks inherit.
///
/// What mpirun is told, and why: ranks may outnumber cores (--oversubscribe, --bind-to none,
/// yielding while idle); it may run as root, as in containers; only shared memory carries messages,
/// since probing for fabrics costs seconds and takes no part; no single-copy through other
/// processes' memory, which containers forbid; PMIx's hash store, since the default one fails now
/// and then at start.
Command local_command(const Job& job, const Environment& own);

/// Without what Slurm or an outer mpirun told a process about its place: an mpirun that sees it
/// takes the job's nodes for its own and refuses ("already filled"), and Slurm's own commands take
/// it for options (SLURM_GPUS_PER_NODE makes every step a whole node). SLURM_CONF stays.
Environment without_outer_starter(const Environment& environment);

/// Variables that a starter passes on to other hosts, beside what a job sets.
bool passed_on(const std::string& name);

/// The environment as it may be written to a file: values of names that look like secrets are
/// replaced.
Environment redacted(const Environment& environment);
std::string redacted(const std::string& name, const std::string& value);

}  // namespace graphproof::launcher
