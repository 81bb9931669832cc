// How many kernels a process launched in graphs and outside.
#pragma once

#include "suites/checks/watched/job/watched_job.h"

namespace graphproof::checks::watched {

struct KernelCounts {
  std::int64_t in_graphs = 0;  // nodes of graphs, each as often as it was launched
  std::int64_t outside = 0;    // without those that were captured
  /// Why `in_graphs` is too small, if it is.
  std::optional<std::string> incomplete;

  /// `in_graphs` of all; 0 without any kernel.
  double share() const;
};

KernelCounts kernel_counts(const JobProcess& process);

}  // namespace graphproof::checks::watched
