// How the processes of a watched command end, besides the one that the launcher started itself:
// their parents wait for them and often tell no more than that one failed. A process that has ended
// keeps its status in /proc until its parent has waited for it, and its descriptor becomes readable
// at its end, so that a launcher that waits for both is mostly there in time.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace graphproof::launcher {

/// A process that a signal has ended.
struct SignalledEnd {
  std::string name;
  int signal = 0;
};

/// Not for several threads. Owns a descriptor (pidfd) of each process that it follows.
class ProcessEnds {
 public:
  // Jobs on one host have fewer ranks than this; descriptors are limited.
  static constexpr std::size_t kMostFollowed = 256;

  ProcessEnds() = default;
  ~ProcessEnds();
  ProcessEnds(const ProcessEnds&) = delete;
  ProcessEnds& operator=(const ProcessEnds&) = delete;

  /// Follows a process that has not ended. Returns its descriptor, which becomes readable at its
  /// end and stays this object's; -1 if it is followed already or cannot be.
  int follow(int pid, std::int64_t start_ticks, const std::string& name);
  /// Those that were ended by a signal since the last call. A process whose parent was faster is
  /// left out.
  std::vector<SignalledEnd> look();

 private:
  struct Followed {
    int pid = 0, descriptor = -1;
    std::int64_t start_ticks = 0;
  };
  std::map<std::string, Followed> followed_;  ///< by name; the descriptor is -1 once it has ended
};

}  // namespace graphproof::launcher
