#include "suites/checks/watched/job/kernel_counts.h"

#include "suites/checks/attempt/concat.h"

namespace graphproof::checks::watched {

double KernelCounts::share() const {
  const std::int64_t all = in_graphs + outside;
  return all == 0 ? 0 : static_cast<double>(in_graphs) / static_cast<double>(all);
}

KernelCounts kernel_counts(const JobProcess& process) {
  KernelCounts counts{.outside = process.eager_kernels()};
  for (const Executable& one : executables(process)) {
    counts.in_graphs += one.launches() * one.kernels();
    if (one.launches() > 0 && one.graph == nullptr)
      counts.incomplete = concat("the nodes of ", one.title(), " were not read");
  }
  if (process.line().retired_launches > 0)
    counts.incomplete = concat(process.line().retired_launches,
                               " launches of destroyed graphs have no line of their own");
  return counts;
}

}  // namespace graphproof::checks::watched
