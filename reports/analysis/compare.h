// Compares two runs of the same matrix: what changed in the stack; which cases broke, were healed,
// compute other numbers, became slower or use more memory; and which axis values distinguish the
// changed cases from the others. What of this fails a release is in gates.h.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "reports/analysis/drift.h"
#include "reports/analysis/explain.h"
#include "reports/outcome/run_result.h"
#include "reports/record/verdict/exit_code.h"
#include "reports/record/verdict/verdict.h"
#include "reports/statistics/intervals.h"

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

/// What a run stood on, by part: versions, driver, GPUs, kernel, and the environment variables that
/// a run records.
std::map<std::string, std::string> stack_parts(const record::Run& run);
/// The parts that differ; one that is absent on a side is "unset".
std::vector<StackChange> stack_changes(const std::map<std::string, std::string>& left,
                                       const std::map<std::string, std::string>& right);

/// A case whose verdict or figure differs.
struct CaseChange {
  std::string case_id, name;
  std::string left, right;  // verdicts, or the figure's values
  std::string figure;       // empty if the verdict differs
  double ratio = 0;         // right / left; 0 if the verdict differs
};

/// The cases that changed in one way.
struct ChangeGroup {
  std::vector<CaseChange> cases;
  /// What distinguishes most of them from the other compared cases.
  Explanation explained_by;
};

/// How a figure changed over all cases that passed in both runs and have it in both. A ratio is
/// right / left.
struct FigureChange {
  std::string figure;
  int pairs = 0;     // cases
  double ratio = 1;  // geometric mean over the cases
  /// Of `ratio`, from a bootstrap over the cases; absent for fewer than kFewestPairs cases.
  std::optional<ConfidenceInterval> interval;
  /// The largest ratio of a single case, and that case.
  double largest = 1;
  std::string largest_case;
};

/// A case that passed in both runs and computed other numbers.
struct CaseDrift {
  std::string case_id, name;
  Drift drift;
};

/// What a run covered.
struct Covered {
  int planned = 0, shown = 0;  // cases: of the plan; with a verdict of their own
  int checks_unexercised = 0;  // checks that found nothing to look at, over all cases
  bool operator==(const Covered&) const = default;
};

/// See above. A change goes from `left`, the earlier run, to `right`.
struct Comparison {
  std::string left, right;  // run names
  std::vector<StackChange> stack;
  int compared = 0;  // cases that both runs have and that ran in both
  Covered covered_left, covered_right;
  /// Why times and memory, or computed numbers, are not compared; empty if they are.
  std::string no_figures, no_drift;
  std::vector<FigureChange> figures;
  std::map<DriftClass, int> drift_counts;  // of the cases whose numbers were compared
  std::vector<CaseDrift> drift;            // those that are not bitwise equal, the worst first
  ChangeGroup broke, healed,
      changed;       // acceptable -> not, not -> acceptable, one failure -> another
  ChangeGroup lost;  // acceptable on the left, not run, skipped or unexercised on the right
  ChangeGroup slower, faster, grew, shrank;
  std::vector<std::string> only_left, only_right;  // case names
};

/// Why the two runs can't be compared at all, and what to do; empty if they can.
struct NotComparable {
  std::string got, why, next;
};
std::optional<NotComparable> not_comparable(const RunResult& left, const RunResult& right);

/// `drifts`: by case id, what drift.h says about the cases of which both runs kept evidence.
Comparison compare(const RunResult& left, const RunResult& right,
                   const std::map<std::string, Drift>& drifts = {});

/// 1 if a case broke; otherwise 4 if a case has no result on the right although it had one on the
/// left, or if nothing was compared; otherwise 0.
record::ExitCode exit_code(const Comparison& comparison);

/// Whether larger is slower, and whether larger is more memory: by the unit in a figure's name.
bool is_time(const std::string& figure);
bool is_memory(const std::string& figure);

/// The groups of cases in the order in which reports show them, `broke` first.
struct NamedGroup {
  const char* name;
  const char* meaning;
  ChangeGroup Comparison::* group;
};
std::span<const NamedGroup> change_groups();

/// What compare --json prints, without gates (gates.h).
nlohmann::json to_json(const Comparison& comparison);

}  // namespace graphproof::reports
