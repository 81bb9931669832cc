// The order in which the graphs of one pool may be launched.
//
// A capture may reuse memory of the pool that was freed during earlier captures, so graphs that
// share a pool give right results only in the order of their captures. From a module's forward to
// its backward, tensors are alive in the pool; while none is, the order may start again.
#pragma once

#include <cstdint>

#include "fixtures/device/device.h"

namespace graphproof::engines {

/// One pool and the launches of its graphs so far.
struct PoolOrder {
  capture::Pool pool;
  std::int64_t captures = 0;      // so far: the position of the next graph
  std::int64_t last = -1;         // the position of the graph that was launched last
  std::int64_t alive = 0;         // forwards launched whose backward was not launched yet
  std::int64_t out_of_order = 0;  // launches that were made although allows() was false

  bool allows(std::int64_t position) const { return alive == 0 || position > last; }
  void begin_step() {
    last = -1;
    alive = 0;
  }
};

}  // namespace graphproof::engines
