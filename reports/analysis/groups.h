// The failures of a run in groups of one signature, and what the cases of a group have in common
// that the other cases do not have.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "reports/outcome/run_result.h"
#include "reports/outcome/signature.h"

namespace graphproof::reports {

/// What the cases of a group have in common, as a condition on axes. Values are added as long as
/// they exclude other cases, the one that excludes the most first, so `outside` is as small as one
/// value or set of values for each axis can make it.
struct CommonValues {
  /// In the expression language: "allocator == expandable and placement == per_rank". Empty if
  /// nothing distinguishes the cases, or if there is only one, which has all its values in common
  /// with itself.
  std::string expression;
  int outside = 0;  // other cases for which the expression holds too
  int others = 0;   // all other cases that gave a result
};

/// Cases that ended in the same way.
struct FailureGroup {
  /// Of cases without a product failure it has only the verdict and the reason.
  Signature signature;
  /// Of its cases. Of expected failures the observed one, because it says what they do.
  record::Verdict verdict;
  /// Whether the plan expected it: a hazard or a known issue.
  bool expected = false;
  std::vector<std::size_t> cases;  // indexes in RunResult::cases, in plan order
  CommonValues common;
};

/// `value` of an axis as the expression language writes it: a string that is no word is quoted.
std::string literal(const nlohmann::json& value);

/// The groups of all cases that need attention, and of those whose failure was expected (not
/// planted faults, which kill matrices show). In the order of failures_first(), expected ones last.
std::vector<FailureGroup> failure_groups(const RunResult& run);

}  // namespace graphproof::reports
