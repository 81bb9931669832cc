// How a batch is started on this host: a pure function from a job to a command. How agents come to
// other hosts and nodes is in cluster/commands.h, with functions of the same kind.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "launcher/host/child.h"

namespace graphproof::launcher {

/// The ranks of one batch on this host.
struct Job {
  int world_size = 1;
  std::string device;             // sim | cuda
  std::vector<std::string> gpus;  // as CUDA_VISIBLE_DEVICES spells them, one per rank, or fewer,
                                  // which the ranks share in turn; empty on sim
  bool gpus_shared = false;       // with ranks of other batches, at the same time
  std::vector<int> cpus;          // near the GPUs; empty: any CPU
  std::filesystem::path program;  // the rank program; graphproof-start is in the same folder
  /// Not empty: the rank program is the package graphproof.rank of this Python instead, for the
  /// cases of a subject other than reference. The package is in the folder of `program`.
  std::string python;
  bool imports_apart = false;  // several ranks of `python` are not forked from one import: a tool
                               // runs each of them
  std::string sanitizer;  // the tool of compute-sanitizer under which the one rank of a case of the
                          // axis `sanitizer` runs; empty: none
  std::filesystem::path sanitizer_log;
  std::vector<std::string> switches;  // its arguments before the batch file
  std::filesystem::path batch_file;
  std::filesystem::path node_folder;  // local to this host; mpirun's own files go there
  std::filesystem::path
      shm_folder;  // below /dev/shm; MPI's shared memory goes there, so that leftovers are found
  std::string mark;
  Environment environment;  // what the cases' axes ask for; it overrides everything but the lease
                            // and the mark
};

/// The folder that has the Python package graphproof, next to the programs of graphproof.
std::filesystem::path python_packages(const std::filesystem::path& programs);
/// PYTHONPATH with that folder first; `own` may have one already.
std::string python_path(const std::filesystem::path& programs, const Environment& own);

/// Whether the ranks find each other without MPI: on GPUs NCCL does it, and a single rank has no
/// other to find. Only tensors of several ranks of the simulated device travel over MPI.
bool without_mpi(const Job& job);

/// The command that starts the ranks of `job` on this host: through mpirun, or without MPI through
/// graphproof-start, which listens on no port. Several ranks of Python are forked from one import
/// by graphproof.starter, in the environment that this batch gives to its imports, unless they
/// import apart. `own` is the launcher's environment, which the ranks inherit.
///
/// The options of mpirun, and why: ranks may outnumber cores (--oversubscribe, --bind-to none,
/// yielding while idle). It may run as root, as in containers. Only shared memory carries messages,
/// because probing for fabrics costs seconds and no fabric is used. Single-copy through other
/// processes' memory is off, because containers forbid it. PMIx uses its hash store, because the
/// default one sometimes fails at start.
Command local_command(const Job& job, const Environment& own);

/// The environment without what Slurm or an outer mpirun told a process about its place. An mpirun
/// that sees it takes the job's nodes for its own and refuses ("already filled"), and Slurm's own
/// commands take it for options (SLURM_GPUS_PER_NODE makes every step a whole node). SLURM_CONF
/// stays.
Environment without_outer_starter(const Environment& environment);

/// Whether a starter passes the variable on to other hosts, in addition to what a job sets.
bool passed_on(const std::string& name);

/// The environment as it may be written to a file: the values of names that look like secrets are
/// replaced.
Environment redacted(const Environment& environment);
std::string redacted(const std::string& name, const std::string& value);

}  // namespace graphproof::launcher
