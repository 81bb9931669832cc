// The table of planted faults of a run: whether each was caught by its detector, and whether the
// same case without the fault (its clean twin) passed.
#pragma once

#include <string>
#include <vector>

#include "reports/outcome/run_result.h"
#include "reports/record/job/plan.h"
#include "reports/record/run/faults.h"
#include "reports/record/run/record.h"

namespace graphproof::reports {

/// Whether `check` belongs to `detector`: "D04.learning_rate" belongs to "D04".
bool of_detector(const std::string& check, const std::string& detector);

/// What `record` shows about the fault that `expect` names. REQUIRES: expect.kind is fault.
record::FaultStatus fault_status(const record::Expect& expect, const record::Record& record);

/// One row for each planted fault, in plan order; empty if the run has none. A clean twin that is
/// not in the plan counts as not_run.
std::vector<record::FaultResult> faults(const RunResult& run);

}  // namespace graphproof::reports
