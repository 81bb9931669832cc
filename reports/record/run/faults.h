// faults.json: a list of every planted fault of the run and whether it was caught.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reports/record/text/fields.h"
#include "reports/record/verdict/verdict.h"

namespace graphproof::record {

/// Whether a fault was caught. killed: a check of its detector failed. killed_elsewhere: only other
/// checks failed. survived: no check failed. harmless: it was planted, but has no effect with this
/// software stack. unexercised: this device can't show it, or the case did not run.
enum class FaultStatus { killed, killed_elsewhere, survived, harmless, unexercised };
std::string_view name(FaultStatus status);
std::optional<FaultStatus> fault_status_from(std::string_view text);

/// The result of one planted fault.
struct FaultResult {
  std::string fault, detector;
  std::vector<std::string> killed_by;  // the checks that failed
  FaultStatus status = FaultStatus::unexercised;
  Verdict clean_twin;

  bool operator==(const FaultResult&) const = default;
};

Json to_json(const std::vector<FaultResult>& faults);
std::vector<FaultResult> faults_from(const nlohmann::json& value, const std::string& where);

}  // namespace graphproof::record
