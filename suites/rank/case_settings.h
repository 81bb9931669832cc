// What a case asks of the process that it runs in: its configuration, how its planted fault changes
// the run, and settings of the libraries. The same in a rank and in a process in which a job of the
// case resumes.
#pragma once

#include <cstdint>

#include "fixtures/device/device.h"
#include "fixtures/process/rank.h"
#include "matrix/case/axes.h"
#include "matrix/case/case.h"
#include "suites/case/step_config.h"
#include "workloads/faults/hooks/fault_hooks.h"

namespace graphproof::suites {

struct CaseSettings {
  StepConfig config;
  faults::RunPlan plan;
};

/// The settings of `test_case` on the rank `place`. Throws what step_config() does.
CaseSettings case_settings(const matrix::AxisTable& axes, const matrix::Case& test_case,
                           const fixtures::Rank& place, std::uint64_t seed);

/// Makes them those of this process, and returns the stream of the case.
c10::Stream apply(const CaseSettings& settings, capture::Device& device);

}  // namespace graphproof::suites
