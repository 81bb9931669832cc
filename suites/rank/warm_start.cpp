#include "suites/rank/warm_start.h"

#include <unistd.h>

#include <stdexcept>
#include <string>
#include <thread>

namespace graphproof::suites {

void wait_for_go(const std::filesystem::path& file, std::chrono::milliseconds deadline) {
  using Clock = std::chrono::steady_clock;
  // A check takes microseconds, and a longer pause would delay every case of a run.
  constexpr std::chrono::milliseconds kPause{1};
  const Clock::time_point end = Clock::now() + deadline;
  while (access(file.c_str(), F_OK) != 0) {
    if (Clock::now() >= end)
      throw std::runtime_error(
          "the launcher did not let the cases begin; got no file " + file.string() +
          "; want it within " + std::to_string(deadline.count()) +
          " ms; ranks that wait forever occupy a GPU; next: check whether the launcher runs");
    std::this_thread::sleep_for(kPause);
  }
}

}  // namespace graphproof::suites
