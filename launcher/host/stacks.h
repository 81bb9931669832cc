// Where the processes of a hung batch are in their code, collected before they are ended: the state
// of every thread by /proc, and the stacks by a debugger where the host has one. Bounded in time,
// and a step at a time.
#pragma once

#include <cstdint>
#include <deque>
#include <filesystem>
#include <list>
#include <string>
#include <vector>

#include "launcher/host/child.h"

namespace graphproof::launcher {

/// One collection: starts debuggers and waits for them.
class StackCollection {
 public:
  // A debugger first reads the symbols of LibTorch, which takes ten seconds of a core. /proc
  // answers at once.
  static constexpr std::int64_t kDebugger_ms = 30000;

  /// A rank and its process.
  struct Target {
    int rank = 0;
    std::int64_t pid = 0;
  };

  /// Makes `folder` with rank-N.threads for each target; with `debugger` also rank-N.stack, in the
  /// order of `targets`, as many at the same time as the host has cores.
  StackCollection(std::filesystem::path folder, std::vector<Target> targets, bool debugger,
                  std::int64_t now_ms);

  /// True when every debugger has ended or the time is over; what they wrote by then stays.
  bool step(std::int64_t now_ms);

 private:
  void start_debugger(const Target& target);

  std::filesystem::path folder_;
  std::int64_t deadline_ms_;
  std::deque<Target> waiting_;
  std::list<Child> debuggers_;
};

/// Of every thread of `pid`, as /proc shows it: name, state, the kernel function in which it waits,
/// its system call.
std::string threads_of(std::int64_t pid);

}  // namespace graphproof::launcher
