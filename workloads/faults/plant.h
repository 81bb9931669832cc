// Plants a fault of matrix/tables/faults.json in a training step and its engine. The faults are in
// this folder, in files by topic. To add one, write its row in the table, its class here and its
// test in workloads/engines/fault_test.cpp.
#pragma once

#include <memory>

#include "fixtures/process/fault.h"
#include "workloads/faults/hooks/fault_hooks.h"

namespace graphproof::faults {

/// New hooks for one training step, with the sound behaviour for Fault::none.
std::shared_ptr<FaultHooks> plant(fixtures::Fault fault);

}  // namespace graphproof::faults
