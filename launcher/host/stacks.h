// Where the processes of a hung batch stand, taken before they are ended: what /proc says of every
// thread, and the stacks by a debugger where there is one. Bounded, and a step at a time.
#pragma once

#include <cstdint>
#include <deque>
#include <filesystem>
#include <list>
#include <string>
#include <vector>

#include "launcher/host/child.h"

namespace graphproof::launcher {

class StackCollection {
 public:
  // A debugger reads the symbols of LibTorch first, which takes ten seconds of a core; /proc is
  // there at once.
  static constexpr std::int64_t kDebugger_ms = 30000;

  struct Target {
    int rank = 0;
    std::int64_t pid = 0;
  };

  /// Makes `folder` with rank-N.threads for each target; with `debugger` also rank-N.stack, in the
  /// order of `targets`, as many side by side as the host has cores.
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

/// What /proc says of every thread of `pid`: name, state, the kernel function it waits in, its
/// system call.
std::string threads_of(std::int64_t pid);

}  // namespace graphproof::launcher
