// What a measurement costs the thread that makes it.
#pragma once

#include <sys/resource.h>
#include <time.h>

namespace graphproof::bench {

/// CPU seconds of this thread, which a busy machine does not change.
inline double cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

/// The largest amount of memory that this process has used, in MB.
inline double peak_mb() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

}  // namespace graphproof::bench
