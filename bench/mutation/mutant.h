// What the changed sources of the mutation bench ask (bench/mutation/mutants.py): whether one
// change is active. Included by them alone.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>

namespace graphproof {

/// Whether the program has come to its `main`. What runs earlier is reached by every case.
inline bool& main_has_begun() {
  static bool begun = false;
  return begun;
}

/// Whether change `number` is the one that GRAPHPROOF_MUTANT names. Where
/// GRAPHPROOF_MUTANTS_REACHED names a file, its byte `number` gets bit 1 before `main` and bit 2
/// from then on: which changes and blocks a case runs into. The file is as large as there are
/// numbers. It is mapped, because ranks may end without running any exit handler. Callable from
/// every thread.
inline bool mutant(int number) {
  struct Switch {
    int active = -1;
    unsigned char* reached = nullptr;
    Switch() {
      if (const char* text = std::getenv("GRAPHPROOF_MUTANT")) active = std::atoi(text);
      const char* path = std::getenv("GRAPHPROOF_MUTANTS_REACHED");
      if (path == nullptr) return;
      const int file = ::open(path, O_RDWR | O_CLOEXEC);
      if (file < 0) std::abort();
      const off_t size = ::lseek(file, 0, SEEK_END);
      void* mapped = ::mmap(nullptr, static_cast<std::size_t>(size), PROT_READ | PROT_WRITE,
                            MAP_SHARED, file, 0);
      ::close(file);
      if (mapped == MAP_FAILED) std::abort();
      reached = static_cast<unsigned char*>(mapped);
    }
  };
  static const Switch chosen;
  if (chosen.reached != nullptr) {
    const unsigned char when = main_has_begun() ? 2 : 1;
    if ((__atomic_load_n(chosen.reached + number, __ATOMIC_RELAXED) & when) == 0)
      __atomic_fetch_or(chosen.reached + number, when, __ATOMIC_RELAXED);
  }
  return number == chosen.active;
}

}  // namespace graphproof
