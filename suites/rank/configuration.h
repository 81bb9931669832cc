// The evidence line `config`: the settings that the case asks for, and those that the libraries
// report.
#pragma once

#include <nlohmann/json.hpp>

#include "suites/case/case_scope.h"
#include "suites/case/step_config.h"
#include "suites/rank/rank_process.h"

namespace graphproof::suites {

/// Writes the line. `stream` is that of the case. `axes` are the effective values of all axes of
/// the case. Settings of libraries that the device does not use (NCCL on sim) are left out.
void write_configuration(CaseScope& scope, RankProcess& process, const StepConfig& config,
                         const c10::Stream& stream, const nlohmann::json& axes);

}  // namespace graphproof::suites
