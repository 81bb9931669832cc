// Compares two runs of the same matrix: what changed in the stack; which cases broke, were healed,
// became slower or use more memory; and which axis values distinguish the changed cases from the
// others. As a release gate it exits with 1 if a case broke.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "reports/outcome/run_result.h"
#include "reports/record/verdict/exit_code.h"
#include "reports/record/verdict/verdict.h"

namespace graphproof::reports {

inline constexpr std::string_view kCompareSchema = "graphproof-compare/1";

/// A time counts as slower or faster, and a number of bytes as more or fewer, from this ratio on.
/// Two runs of one build on one machine differ by up to a tenth in a case, because the figures are
/// medians of a few steps on a shared host.
inline constexpr double kNotable = 1.25;

/// A part of the stack, such as NCCL, whose version or value differs.
struct StackChange {
  std::string part, left, right;
};

/// A case whose verdict or figure differs.
struct CaseChange {
  std::string case_id, name;
  std::string left, right;  // verdicts, or the figure's values
  std::string figure;       // empty if the verdict differs
  double ratio = 0;         // right / left; 0 if the verdict differs
};

/// An expression that distinguishes the cases of a group from the other compared cases. It is true
/// for `inside` cases of the group and for `outside` of the others.
struct Explanation {
  std::string expression;  // "allocator == expandable and impl == full_iteration"
  int inside = 0, outside = 0;
};

/// The cases that changed in one way.
struct ChangeGroup {
  std::vector<CaseChange> cases;
  /// The best first, at most three; empty if no value distinguishes the cases.
  std::vector<Explanation> explained_by;
};

/// See above. A change goes from `left`, the earlier run, to `right`.
struct Comparison {
  std::string left, right;  // run names
  std::vector<StackChange> stack;
  int compared = 0;  // cases that both runs have and that ran in both
  ChangeGroup broke, healed,
      changed;       // acceptable -> not, not -> acceptable, one failure -> another
  ChangeGroup lost;  // acceptable on the left, not run, skipped or unexercised on the right
  ChangeGroup slower, faster, grew, shrank;
  std::vector<std::string> only_left, only_right;  // case names
};

Comparison compare(const RunResult& left, const RunResult& right);

/// 1 if a case broke; otherwise 4 if a case has no result on the right although it had one on the
/// left, or if nothing was compared; otherwise 0.
record::ExitCode exit_code(const Comparison& comparison);

nlohmann::json to_json(const Comparison& comparison);
/// The text for a terminal: the stack, then the groups that have cases, `broke` first.
std::string text(const Comparison& comparison);

}  // namespace graphproof::reports
