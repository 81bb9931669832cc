#include "workloads/engines/speed/busy_time.h"

#include <algorithm>

namespace graphproof::speed {

std::int64_t union_ns(std::vector<Interval> intervals) {
  std::sort(intervals.begin(), intervals.end(),
            [](const Interval& a, const Interval& b) { return a.begin_ns < b.begin_ns; });
  std::int64_t total_ns = 0, covered_to_ns = intervals.empty() ? 0 : intervals.front().begin_ns;
  for (const Interval& interval : intervals) {
    const std::int64_t begin_ns = std::max(interval.begin_ns, covered_to_ns);
    if (interval.end_ns <= begin_ns) continue;
    total_ns += interval.end_ns - begin_ns;
    covered_to_ns = interval.end_ns;
  }
  return total_ns;
}

BusyTime busy_time(const std::vector<fixtures::DeviceActivity>& trace) {
  constexpr double kNsPerMs = 1e6;
  std::vector<Interval> compute, collectives;
  BusyTime busy;
  for (const fixtures::DeviceActivity& activity : trace) {
    const bool kernel = activity.kind == fixtures::ActivityKind::kernel;
    busy.kernels += kernel ? 1 : 0;
    (kernel && activity.name.starts_with("nccl") ? collectives : compute)
        .push_back({activity.begin_ns, activity.end_ns});
  }
  busy.compute_ms = static_cast<double>(union_ns(std::move(compute))) / kNsPerMs;
  busy.collectives_ms = static_cast<double>(union_ns(std::move(collectives))) / kNsPerMs;
  return busy;
}

}  // namespace graphproof::speed
