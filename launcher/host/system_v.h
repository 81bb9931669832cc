// Semaphores, shared memory and message queues of System V: they outlive their processes until a
// process removes them. POSIX objects are files below /dev/shm and are found there.
#pragma once

#include <string>
#include <vector>

namespace graphproof::launcher {

/// One object of System V.
struct SystemV {
  enum class Kind { semaphores, shared_memory, messages };
  Kind kind = Kind::semaphores;
  int id = 0;
  std::vector<int> pids;  // that made it or used it last, as far as the kernel remembers
  bool attached = false;  // shared memory that a process has mapped

  /// "System V semaphores 32769".
  std::string name() const;
};

/// The objects of this user on this host.
std::vector<SystemV> own_system_v();
/// Removes the object. False where it is gone already or belongs to another user.
bool remove(const SystemV& object);

}  // namespace graphproof::launcher
