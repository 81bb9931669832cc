// hazards.json: the outcome of each hazard case of a run, and whether the rules of upstream
// dialects agree with it.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reports/record/job/heartbeat.h"
#include "reports/record/text/fields.h"
#include "reports/record/verdict/phase.h"
#include "reports/record/verdict/verdict.h"

namespace graphproof::record {

inline constexpr std::string_view kHazardsSchema = "graphproof-hazards/1";

/// The ranks of a hang: first the one that fell silent, then those that waited for it.
struct HazardHang {
  Phase phase = Phase::validate;
  std::vector<int> ranks;
  std::optional<Collective> last_collective;

  bool operator==(const HazardHang&) const = default;
};

/// The case that differs only in the setting that should help, and its outcome in the same run.
struct HazardCure {
  std::string setting;  // "NCCL_GRAPH_REGISTER=0"
  std::string case_id;
  Verdict verdict;  // not_run if the run does not have the case

  bool operator==(const HazardCure&) const = default;
};

/// What an upstream rule predicts. `agrees` is true if the rule refuses a case that failed or
/// allows one that worked; nothing if the case showed neither.
struct HazardPrediction {
  std::string dialect, covers, rule;
  bool refuses = false;
  std::optional<bool> agrees;

  bool operator==(const HazardPrediction&) const = default;
};

/// A hazard case.
struct HazardCell {
  std::string case_id, name;
  bool captured = false;
  std::string collective, allocator, nccl_graph_register, placement;
  std::string hazard;    // the id of the expected hazard
  std::string basis;     // seen, predicted
  std::string expected;  // a verdict or a dotted prefix of one
  Verdict observed, verdict;
  std::string registration;  // of buffers on all ranks, by NCCL's log; "" if it is not known
  std::optional<HazardHang> hang;
  std::optional<HazardCure> cure;  // if a failure was expected or happened
  std::vector<HazardPrediction> predictions;

  bool operator==(const HazardCell&) const = default;
};

/// The hazard cases of a run.
struct Hazards {
  std::string run_id, device, nccl_version;
  std::vector<HazardCell> cells;  // in plan order

  bool operator==(const Hazards&) const = default;
};

Json to_json(const Hazards& hazards);
Hazards hazards_from(const nlohmann::json& value, const std::string& where);

}  // namespace graphproof::record
