// The curves of a case for its page, read step by step from the evidence of its ranks. Nothing here
// judges: verdicts come from records.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "reports/record/evidence/evidence.h"

namespace graphproof::reports {

/// One value for each step, in step order. A value that is not finite is null in JSON.
struct Curve {
  std::vector<std::int64_t> steps;
  std::vector<double> values;

  bool operator==(const Curve&) const = default;
};

/// All curves of one attempt.
struct Series {
  /// Keyed by arm: the mean loss over the microbatches, of the last rank.
  std::map<std::string, Curve> loss;
  /// Keyed by arm: the norm of all gradients, of the last rank.
  std::map<std::string, Curve> grad_norm;
  /// Keyed by the compared quantity: the largest absolute difference over all ranks.
  std::map<std::string, Curve> difference;
  /// Keyed by the compared quantity: the largest difference in units in the last place over all
  /// ranks.
  std::map<std::string, Curve> ulp;
  /// Keyed by solo arm: the time of each step in ms, of the slowest rank.
  std::map<std::string, Curve> step_ms;
  /// Keyed by "arm quantity": bytes, the largest over all ranks.
  std::map<std::string, Curve> memory;

  bool empty() const {
    return loss.empty() && difference.empty() && memory.empty() && step_ms.empty();
  }
};

/// The curves of one attempt, from the evidence of all ranks that left some. Curves of more than
/// 400 steps keep every n-th step and the last one.
Series series_of(const std::vector<record::Evidence>& ranks);

nlohmann::json to_json(const Series& series);

}  // namespace graphproof::reports
