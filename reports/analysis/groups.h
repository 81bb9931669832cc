// The failures of a run in groups of one signature, and what the cases of a group have in common
// that the other cases do not have.
#pragma once

#include <cstddef>
#include <vector>

#include "reports/analysis/explain.h"
#include "reports/outcome/run_result.h"
#include "reports/outcome/signature.h"

namespace graphproof::reports {

/// Cases that ended in the same way.
struct FailureGroup {
  /// Of cases without a product failure it has only the verdict and the reason.
  Signature signature;
  /// Of its cases. Of expected failures the observed one, because it says what they do.
  record::Verdict verdict;
  /// Whether the plan expected it: a hazard or a known issue.
  bool expected = false;
  std::vector<std::size_t> cases;  // indexes in RunResult::cases, in plan order
  /// What they have in common that no other case has which gave a result. A single case is not
  /// explained: it has all its values in common with itself.
  Explanation common;
};

/// The groups of all cases that need attention, and of those whose failure was expected (not
/// planted faults, which kill matrices show). In the order of failures_first(), expected ones last.
std::vector<FailureGroup> failure_groups(const RunResult& run);

}  // namespace graphproof::reports
