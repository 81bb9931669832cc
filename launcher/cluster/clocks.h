#pragma once

#include <chrono>
#include <cstdint>

namespace graphproof::cluster {

/// For waiting: never steps.
inline std::int64_t steady_ms() {
  using namespace std::chrono;
  return duration_cast<milliseconds>(steady_clock::now().time_since_epoch()).count();
}

/// Since 1970, for what others read: steps with the node's clock.
inline std::int64_t utc_ms() {
  using namespace std::chrono;
  return duration_cast<milliseconds>(system_clock::now().time_since_epoch()).count();
}

}  // namespace graphproof::cluster
