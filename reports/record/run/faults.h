// faults.json: the kill matrix, a bare list. Every planted fault of the run with what became of it.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reports/record/text/fields.h"
#include "reports/record/verdict/verdict.h"

namespace graphproof::record {

/// killed: its named detector's check failed. killed_elsewhere: only others noticed. survived:
/// nobody did. harmless: planted, but bites nothing on this stack. unexercised: this device cannot
/// show it, or it did not run.
enum class FaultStatus { killed, killed_elsewhere, survived, harmless, unexercised };
std::string_view name(FaultStatus status);
std::optional<FaultStatus> fault_status_from(std::string_view text);

struct FaultResult {
  std::string fault, detector;
  std::vector<std::string> killed_by;  // failing checks
  FaultStatus status = FaultStatus::unexercised;
  Verdict clean_twin;

  bool operator==(const FaultResult&) const = default;
};

Json to_json(const std::vector<FaultResult>& faults);
std::vector<FaultResult> faults_from(const nlohmann::json& value, const std::string& where);

}  // namespace graphproof::record
