// The failures of a run in groups of one signature, and what the cases of a group have in common
// that the other cases do not have.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "reports/outcome/run_result.h"
#include "reports/outcome/signature.h"

namespace graphproof::reports {

/// A condition on axes, in the expression language, that holds for every case of a group.
struct CommonValues {
  std::string expression;  // "allocator == expandable and placement == per_rank"; may be empty
  int inside = 0;          // cases of the group
  int outside = 0;         // other cases for which the expression holds too
  int others = 0;          // all other cases that gave a result
};

/// The values that the cases `inside` have in common. Values are added as long as they exclude
/// other cases, the one that excludes the most first, so `outside` is as small as one value or set
/// of values for each axis can make it. The indexes are those of RunResult::cases, and `considered`
/// contains `inside`. The expression is empty if nothing distinguishes the cases, or if there are
/// fewer than two: one case has all its values in common with itself.
CommonValues common_values(const RunResult& run, const std::vector<std::size_t>& inside,
                           const std::vector<std::size_t>& considered);

/// Cases that ended in the same way.
struct FailureGroup {
  /// Of cases without a product failure it has only the verdict and the reason.
  Signature signature;
  /// Whether the plan expected it: a hazard or a known issue.
  bool expected = false;
  std::vector<std::size_t> cases;  // indexes in RunResult::cases, in plan order
  CommonValues common;
};

/// The groups of all cases that need attention, and of those whose failure was expected (not
/// planted faults, which kill matrices show). In the order of failures_first(), expected ones last.
std::vector<FailureGroup> failure_groups(const RunResult& run);

}  // namespace graphproof::reports
