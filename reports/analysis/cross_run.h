// What earlier runs say about the cases of a run: what is new since the last one, since when a
// failing case fails, and which cases pass and fail on one stack. reports/history fills it in.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "reports/analysis/compare.h"
#include "reports/outcome/standing.h"
#include "reports/record/verdict/verdict.h"
#include "reports/statistics/intervals.h"

namespace graphproof::reports {

/// One case in one run.
struct HistoryResult {
  std::string run_id, started, verdict, fingerprint;
  Standing standing = Standing::not_shown;
  std::optional<double> step_ms;  // of a step with graphs
};

/// What the history says about a case.
struct CaseHistory {
  std::string case_id, name;
  std::vector<HistoryResult> results;  // by time of start, the latest last
  /// The first run of the latest series of failures, and the last run before it that was
  /// acceptable.
  std::optional<HistoryResult> first_bad, last_good;
  /// What changed in the stack between these two.
  std::vector<StackChange> changed;
  /// Values of stack parts that every run which failed has and none which was acceptable: where to
  /// look first. "NCCL 2.29.2".
  std::vector<std::string> suspects;
};

/// A case with both results on one stack.
struct FlakyCase {
  std::string case_id, name, fingerprint;
  int failed = 0, trials = 0;  // a verdict `flaky` counts as failed
  ConfidenceInterval rate;     // 95 %
};

/// An earlier run.
struct EarlierRun {
  std::string run_id, started, fingerprint;  // started: UTC, 2026-11-21T10:15:00Z
};

/// See above. A run is compared with runs on the same kind of device that began before it.
struct CrossRunFacts {
  /// Why nothing is known of earlier runs: a sentence. Everything else is then empty.
  std::string unknown;
  /// The latest earlier run of the same profile; empty if there is none.
  std::string last_run;
  /// Indexes of cases that were acceptable in the last run and fail now, and the reverse.
  std::vector<std::size_t> broke, healed;
  std::vector<StackChange> stack_changes;  // from the last run to this one
  std::vector<EarlierRun> runs;            // the latest ones, the latest last
  /// By index of the case and of the run in `runs`; nothing if that run does not have the case.
  std::vector<std::vector<std::optional<record::Verdict>>> verdicts;
  /// By index of the case: those that fail now, over `runs` and this run, which comes last.
  std::map<std::size_t, CaseHistory> failing;
  /// By index of the case, over those of `runs` that have this run's stack, and this run.
  std::map<std::size_t, FlakyCase> flaky;
};

}  // namespace graphproof::reports
