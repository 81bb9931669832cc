// The function that gives each case its one verdict, from the plan, the facts that the launcher
// recorded and the results of the checks. It is pure: no clock, no files. Rules below 80 turn what
// happened into `observed`; rules from 80 apply what the plan expected and give the verdict. Every
// verdict names its rule.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "matrix/catalogue/checks.h"
#include "reports/record/job/context.h"
#include "reports/record/job/plan.h"
#include "reports/record/run/checks.h"
#include "reports/record/run/faults.h"
#include "reports/record/run/record.h"
#include "reports/record/verdict/exit_code.h"
#include "reports/record/verdict/verdict.h"

namespace graphproof::reports {

/// What the failure of one check means: the verdict of the case ("fail.hang" is completed with the
/// phase that hung), and the devices on which the check can fail at all.
struct CheckEffect {
  std::string verdict;
  std::vector<std::string> devices;
};
using CheckEffects = std::map<std::string, CheckEffect>;
CheckEffects check_effects(const matrix::CheckTable& table);

/// Why a case that has no context was not run.
enum class NotRun { interrupted, budget, circuit_breaker, max_fail, disk };

/// Everything that decides about one attempt of a case.
struct OutcomeInput {
  record::PlanLine plan;
  std::optional<record::Context> context;  // absent: the case was never started
  std::optional<record::Checks> checks;    // absent: the judge left no checks.json
  NotRun not_run = NotRun::interrupted;    // counts only if there is no context
  std::string today;                       // UTC, YYYY-MM-DD: known issues expire
};

/// The verdict of one attempt with its reasons.
struct Outcome {
  record::Verdict verdict, observed;
  int rule = 0;
  std::string reason;
  std::vector<record::Failing> failing;  // the deciding fact first, then the failing checks
  record::CheckCounts counts;
  /// Where it failed; otherwise the furthest phase that a rank reached.
  std::optional<record::Phase> phase;
};

/// A row of the table of rules.
struct Rule {
  int number;
  std::string_view name;
  /// The exit code, if it differs from the verdict's own. For example, a fault that the plan says
  /// this device cannot show is no loss of coverage.
  std::optional<record::ExitCode> exit_code;
};
/// Every rule, in order of precedence within its part.
std::span<const Rule> rules();

Outcome outcome(const OutcomeInput& input, const CheckEffects& effects);

/// The exit code of one case's verdict.
record::ExitCode exit_code(record::Verdict verdict, int rule);

/// The verdict of a case that failed in a batch (exit code 1) and was then run alone:
/// fail.isolation if it is acceptable alone; the verdict of the attempt alone if that is a product
/// failure too; otherwise the first verdict, because a second attempt without a result (infra,
/// not_run, unexercised) must not hide a failure.
Outcome fold(const Outcome& first, const Outcome& alone);

/// The verdict of a failure that was run again once or more: flaky if not every one of
/// `confirmations` failed. REQUIRES: `confirmations` is not empty.
Outcome confirm(const Outcome& first, std::span<const Outcome> confirmations);

/// The record of an attempt for the journal. `artefacts` is the folder of the attempt, relative to
/// the run folder.
record::Record make_record(const OutcomeInput& input, const Outcome& outcome,
                           const std::string& run_id, const std::string& artefacts);

}  // namespace graphproof::reports
