// How a batch is started on this host: a pure function from a job to a command. Engines for other hosts and cluster
// schedulers are further functions of the same kind.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "launcher/child.h"

namespace graphproof::launcher {

struct Job {
  int world_size = 1;
  std::string device;                   // sim | cuda
  std::vector<std::string> gpus;        // as CUDA_VISIBLE_DEVICES spells them, one per rank; empty on sim
  std::filesystem::path program;        // the rank program
  std::vector<std::string> switches;    // of it, before the batch file
  std::filesystem::path batch_file;
  std::filesystem::path node_folder;    // local to this host; mpirun's own files go there
  std::filesystem::path shm_folder;     // below /dev/shm; shared memory of MPI goes there, so that leftovers are ours
  std::string mark;
  Environment environment;              // what the cases' axes ask for: wins over everything but the lease and the mark
};

/// Starts the ranks of `job` through mpirun on this host. `own` is the launcher's environment, which the ranks inherit.
///
/// What mpirun is told, and why: ranks may outnumber cores (--oversubscribe, --bind-to none, yielding while idle); it
/// may run as root, as in containers; only shared memory carries messages, since probing for fabrics costs seconds and
/// takes no part; no single-copy through other processes' memory, which containers forbid; PMIx's hash store, since the
/// default one fails now and then at start.
Command local_command(const Job& job, const Environment& own);

/// The environment as it may be written to a file: values of names that look like secrets are replaced.
Environment redacted(const Environment& environment);
std::string redacted(const std::string& name, const std::string& value);

}  // namespace graphproof::launcher
