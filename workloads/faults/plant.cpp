#include "workloads/faults/plant.h"

#include "workloads/faults/factories.h"

namespace graphproof::faults {

std::shared_ptr<FaultHooks> plant(fixtures::Fault fault) {
  const auto make = kFactories[static_cast<std::size_t>(fault)];
  return make ? make() : std::make_shared<FaultHooks>();
}

}  // namespace graphproof::faults
