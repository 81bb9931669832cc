// A case's curves for a page: what its ranks' evidence says step by step. Read, never judged:
// verdicts come from records.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "reports/record/evidence/evidence.h"

namespace graphproof::reports {

/// One value per step, in step order; a value that is not finite is null in JSON.
struct Curve {
  std::vector<std::int64_t> steps;
  std::vector<double> values;

  bool operator==(const Curve&) const = default;
};

struct Series {
  std::map<std::string, Curve> loss;  // by arm: mean over the microbatches of the last rank
  std::map<std::string, Curve>
      difference;  // by comparison's subject: largest absolute difference over all ranks
  std::map<std::string, Curve> memory;  // by "arm quantity": bytes, the largest over all ranks

  bool empty() const { return loss.empty() && difference.empty() && memory.empty(); }
};

/// The curves of one attempt, of all ranks that left evidence: none where there is none. Curves of
/// more than 400 steps keep every n-th step and the last.
Series series_of(const std::vector<record::Evidence>& ranks);

nlohmann::json to_json(const Series& series);

}  // namespace graphproof::reports
