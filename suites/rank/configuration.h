// The evidence line `config`: what the case asked of the libraries, and what they report.
#pragma once

#include <nlohmann/json.hpp>

#include "suites/case/case_scope.h"
#include "suites/case/step_config.h"
#include "suites/rank/rank_process.h"

namespace graphproof::suites {

/// `axes`: every effective value of the case. What the device does not have (NCCL on sim) is not
/// asked for.
void write_configuration(CaseScope& scope, RankProcess& process, const StepConfig& config,
                         const nlohmann::json& axes);

}  // namespace graphproof::suites
