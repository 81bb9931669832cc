// Plants a fault of matrix/tables/faults.json in a training step and its engine. What each one does
// lies in this folder, in files by topic; to add one: its row in the table, its class here, its
// test in workloads/engines/fault_test.cpp.
#pragma once

#include <memory>

#include "fixtures/process/fault.h"
#include "workloads/faults/hooks/fault_hooks.h"

namespace graphproof::faults {

/// Hooks of one training step: sound ones for none.
std::shared_ptr<FaultHooks> plant(fixtures::Fault fault);

}  // namespace graphproof::faults
