// The two clocks of the launcher.
#pragma once

#include <chrono>
#include <cstdint>

namespace graphproof::launcher {

/// For waiting and for deadlines: never steps.
inline std::int64_t steady_ms() {
  using namespace std::chrono;
  return duration_cast<milliseconds>(steady_clock::now().time_since_epoch()).count();
}

/// Milliseconds since 1970, for what other programs read. Steps when the host's clock is set.
inline std::int64_t utc_ms() {
  using namespace std::chrono;
  return duration_cast<milliseconds>(system_clock::now().time_since_epoch()).count();
}

}  // namespace graphproof::launcher
