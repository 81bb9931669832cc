// How long a GPU was busy: the length of the union of what ran on it, because kernels of several
// streams overlap.
//
// Collectives are told apart by NCCL's names. Their kernels spin until every peer has come, so that
// on all ranks but the last to come they hold waiting as well: only the least of the ranks' times
// is about the collectives themselves.
#pragma once

#include <cstdint>
#include <vector>

#include "fixtures/device/device_trace.h"

namespace graphproof::speed {

struct Interval {
  std::int64_t begin_ns, end_ns;
};

/// Length of the union. Intervals in any order, none of negative length.
std::int64_t union_ns(std::vector<Interval> intervals);

/// Of one rank, of all that was traced.
struct BusyTime {
  double compute_ms = 0;      // the union of kernels, copies and fills that are not NCCL's
  double collectives_ms = 0;  // the union of NCCL's kernels
  std::int64_t kernels = 0;
};

BusyTime busy_time(const std::vector<fixtures::DeviceActivity>& trace);

}  // namespace graphproof::speed
