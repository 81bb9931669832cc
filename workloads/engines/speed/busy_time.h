// How long a GPU was busy: the length of the union of the intervals in which something ran on it,
// because kernels of several streams overlap.
//
// Collectives are recognised by the names of NCCL's kernels. These kernels spin until every peer
// has started, so on all ranks except the last one their times include waiting. Only the smallest
// time of all ranks describes the collectives themselves.
#pragma once

#include <cstdint>
#include <vector>

#include "fixtures/device/device_trace.h"

namespace graphproof::speed {

/// From begin to end, in ns of one clock.
struct Interval {
  std::int64_t begin_ns, end_ns;
};

/// The length of the union of the intervals, which may be in any order. None has a negative length.
std::int64_t union_ns(std::vector<Interval> intervals);

/// The busy times of one rank, over everything that was traced.
struct BusyTime {
  double compute_ms = 0;      // the union of kernels, copies and fills that are not NCCL's
  double collectives_ms = 0;  // the union of NCCL's kernels
  std::int64_t kernels = 0;
};

BusyTime busy_time(const std::vector<fixtures::DeviceActivity>& trace);

}  // namespace graphproof::speed
