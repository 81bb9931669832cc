// The order in which the graphs of one pool may be launched.
//
// A pool gives the memory of what died during one capture to the next, so graphs that share it are
// right only in the order of their captures. Between two modules' forwards and backwards something
// is always alive in the pool; when nothing is, the order may begin again.
#pragma once

#include <cstdint>

#include "fixtures/device/device.h"

namespace graphproof::engines {

struct PoolOrder {
  capture::Pool pool;
  std::int64_t captures = 0;      // so far: the next graph's turn
  std::int64_t last = -1;         // turn of the graph launched last
  std::int64_t alive = 0;         // forwards launched whose backward was not
  std::int64_t out_of_order = 0;  // launches that allows() was against and that were made

  bool allows(std::int64_t turn) const { return alive == 0 || turn > last; }
  void begin_step() {
    last = -1;
    alive = 0;
  }
};

}  // namespace graphproof::engines
