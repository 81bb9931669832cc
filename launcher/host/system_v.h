// Semaphores, shared memory and message queues of System V: they outlive their processes until
// somebody removes them. POSIX ones are files below /dev/shm and are found there.
#pragma once

#include <string>
#include <vector>

namespace graphproof::launcher {

struct SystemV {
  enum class Kind { semaphores, shared_memory, messages };
  Kind kind = Kind::semaphores;
  int id = 0;
  std::vector<int> pids;  // that made it or used it last, as far as the kernel remembers
  bool attached = false;  // shared memory that a process has mapped

  /// "System V semaphores 32769".
  std::string name() const;
};

/// This user's, on this host.
std::vector<SystemV> own_system_v();
/// False where it is gone already, or another's.
bool remove(const SystemV& object);

}  // namespace graphproof::launcher
