// hazards.json: what became of each hazard cell of a run, and whether the rules of upstream
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

/// Ranks that fell silent: the one that the watch named first, then those that waited.
struct HazardHang {
  Phase phase = Phase::validate;
  std::vector<int> ranks;
  std::optional<Collective> last_collective;

  bool operator==(const HazardHang&) const = default;
};

/// The case that differs only in the setting that should help, and what it did in the same run.
struct HazardCure {
  std::string setting;  // "NCCL_GRAPH_REGISTER=0"
  std::string case_id;
  Verdict verdict;  // not_run where the run does not hold it

  bool operator==(const HazardCure&) const = default;
};

/// `agrees`: the rule refuses what bites, or allows what works; nothing where the cell showed
/// neither.
struct HazardPrediction {
  std::string dialect, covers, rule;
  bool refuses = false;
  std::optional<bool> agrees;

  bool operator==(const HazardPrediction&) const = default;
};

struct HazardCell {
  std::string case_id, name;
  bool captured = false;
  std::string collective, allocator, nccl_graph_register, placement;
  std::string hazard, basis,
      expected;  // id; seen or predicted; a verdict or a dotted prefix of one
  Verdict observed, verdict;
  std::string registration;  // what NCCL's log said of all ranks; "" where nobody could tell
  std::optional<HazardHang> hang;
  std::optional<HazardCure> cure;  // where a failure was expected or seen
  std::vector<HazardPrediction> predictions;

  bool operator==(const HazardCell&) const = default;
};

struct Hazards {
  std::string run_id, device, nccl_version;
  std::vector<HazardCell> cells;  // in plan order

  bool operator==(const Hazards&) const = default;
};

Json to_json(const Hazards& hazards);
Hazards hazards_from(const nlohmann::json& value, const std::string& where);

}  // namespace graphproof::record
