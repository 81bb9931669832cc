#include "workloads/engines/capture/engine.h"

#include <stdexcept>

namespace graphproof::engines {

void Engine::floor_step(const workloads::Batch&, double) {
  throw std::logic_error(
      "engine: got floor_step() of an engine without a floor; want an engine whose header "
      "describes one; why: the speed bench compares no other engine with its floor; next: measure "
      "step()");
}

void refuse_after_drop(bool dropped) {
  if (!dropped) return;
  throw std::logic_error(
      "engine: got step() after drop_graphs(); want no more steps; why: the captured graphs and "
      "their memory are gone; next: make a new engine");
}

}  // namespace graphproof::engines
