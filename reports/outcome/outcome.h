// THE verdict function: plan + launcher's facts + checks -> one verdict with the number of the rule
// that gave it. Pure: no clock, no files. What was seen becomes `observed` (rules below 80); what
// the plan expected turns that into the verdict (rules from 80). rules() is the table of both, in
// order of precedence.
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

/// Of one check: the verdict when it fails ("fail.hang" stands for the phase that hung) and where
/// it can be shown.
struct CheckEffect {
  std::string verdict;
  std::vector<std::string> devices;
};
using CheckEffects = std::map<std::string, CheckEffect>;
CheckEffects check_effects(const matrix::CheckTable& table);

/// Why a case without a context did not run.
enum class NotRun { interrupted, budget, circuit_breaker, max_fail, disk };

struct OutcomeInput {
  record::PlanLine plan;
  std::optional<record::Context> context;  // nothing: the case was never started
  std::optional<record::Checks> checks;    // nothing: the judge left none
  NotRun not_run = NotRun::interrupted;    // read only without a context
  std::string today;                       // UTC, YYYY-MM-DD: known issues expire
};

struct Outcome {
  record::Verdict verdict, observed;
  int rule = 0;
  std::string reason;
  std::vector<record::Failing> failing;  // the deciding fact first, then the failing checks
  record::CheckCounts counts;
  std::optional<record::Phase>
      phase;  // where it failed; otherwise the furthest that a rank reached
};

struct Rule {
  int number;
  std::string_view name;
  /// Where it differs from the verdict's own: what is planned to be unshown on a device is no loss
  /// of coverage.
  std::optional<record::ExitCode> exit_code;
};
/// Every rule, in order of precedence within its part.
std::span<const Rule> rules();

Outcome outcome(const OutcomeInput& input, const CheckEffects& effects);

/// The exit code of one case's verdict.
record::ExitCode exit_code(record::Verdict verdict, int rule);

/// The verdict of a batch case that failed (exit code 1) and was then run alone: fail.isolation if
/// it is acceptable alone; the alone attempt's if that is a product failure too; otherwise the
/// first one's, because a retry that showed nothing (infra, not_run, unexercised) must not hide a
/// failure.
Outcome fold(const Outcome& first, const Outcome& alone);

/// The verdict of a failure that was run again `confirmations` times: flaky if only some of them
/// failed. REQUIRES: one confirmation or more.
Outcome confirm(const Outcome& first, std::span<const Outcome> confirmations);

/// The journal's record of an attempt. `artefacts` is relative to the run folder.
record::Record make_record(const OutcomeInput& input, const Outcome& outcome,
                           const std::string& run_id, const std::string& artefacts);

}  // namespace graphproof::reports
