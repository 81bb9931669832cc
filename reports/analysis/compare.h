// Two runs of the same matrix side by side: what changed in the stack, what broke, what healed,
// what got slower, what grew, and which axis values tell the changed cases from the others. For a
// release gate: exit 1 if anything broke.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "reports/outcome/run_result.h"
#include "reports/record/verdict/exit_code.h"
#include "reports/record/verdict/verdict.h"

namespace graphproof::reports {

inline constexpr std::string_view kCompareSchema = "graphproof-compare/1";

/// A time counts as slower or faster, and bytes as more or fewer, from this ratio on: two runs of
/// one build on one machine differ by up to a tenth per case, because the figures are medians of a
/// few steps on a shared host.
inline constexpr double kNotable = 1.25;

struct StackChange {
  std::string part, left, right;
};

/// A case whose verdict or figure is another one.
struct CaseChange {
  std::string case_id, name;
  std::string left, right;  // verdicts, or the figure's values
  std::string figure;       // "" for a verdict
  double ratio = 0;         // right / left; 0 for a verdict
};

/// What the cases of a group have in common and the other compared cases do not: `expression` holds
/// for `inside` of the group's cases and for `outside` of the others.
struct Explanation {
  std::string expression;  // "allocator == expandable and impl == full_iteration"
  int inside = 0, outside = 0;
};

struct ChangeGroup {
  std::vector<CaseChange> cases;
  std::vector<Explanation>
      explained_by;  // the best first, at most three; empty when no value tells them apart
};

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

/// 1 if anything broke; else 4 if a case that was acceptable was not shown again or nothing was
/// compared; else 0.
record::ExitCode exit_code(const Comparison& comparison);

nlohmann::json to_json(const Comparison& comparison);
/// For a terminal: the stack first, then the groups that are not empty, broke first.
std::string text(const Comparison& comparison);

}  // namespace graphproof::reports
