// The kill matrix: what became of every planted fault of a run, and whether its clean twin was
// silent.
#pragma once

#include <string>
#include <vector>

#include "reports/outcome/run_result.h"
#include "reports/record/job/plan.h"
#include "reports/record/run/faults.h"
#include "reports/record/run/record.h"

namespace graphproof::reports {

/// True for a check of that detector: "D04.learning_rate" belongs to "D04".
bool of_detector(const std::string& check, const std::string& detector);

/// REQUIRES: expect.kind is fault.
record::FaultStatus fault_status(const record::Expect& expect, const record::Record& record);

/// One row per planted fault, in plan order; empty if the run has none. A twin that is not in the
/// plan is not_run.
std::vector<record::FaultResult> faults(const RunResult& run);

}  // namespace graphproof::reports
