#include "launcher/policy/case_policy.h"

#include <algorithm>
#include <utility>

#include "matrix/plan/plan_line.h"

namespace graphproof::launcher {
namespace {

bool failed(record::Verdict verdict, int rule) {
  return reports::exit_code(verdict, rule) == record::ExitCode::product;
}
bool failed(const reports::Outcome& outcome) { return failed(outcome.verdict, outcome.rule); }

std::string failed_in_batch(const std::string& batch, record::Verdict verdict) {
  return "failed in batch " + batch + " (" + std::string(verdict.text()) + ")";
}

std::string ended_attempt(int attempt, record::Verdict verdict) {
  return "attempt " + std::to_string(attempt) + " ended " + std::string(verdict.text());
}

/// Whether a failure is run once more alone, to tell whether its batch caused it. A planted fault
/// has its one attempt.
bool is_diagnosed(const std::string& isolation, const record::PlanLine& line) {
  return isolation == "batch" && line.expect.kind != "fault";
}

/// What is planted or forbidden on purpose has no rate to be measured.
bool has_rate(const record::PlanLine& line) {
  const std::string& kind = line.expect.kind;
  return kind != "fault" && kind != "hazard" && kind != "rejected";
}

/// True if the graph arm gave other numbers than eager, and that was not planted on purpose.
bool diverges(const reports::Outcome& outcome, const record::PlanLine& line, bool planted_too) {
  if (line.expect.kind != "pass" && !planted_too) return false;
  // Only the rank program of reference keeps the result of every operator.
  if (matrix::subject_of(line) != matrix::kReference) return false;
  // Without these the first operator that differs may be one that differs from itself.
  if (line.axes.value("deterministic_algorithms", "on") == "off") return false;
  return std::any_of(
      outcome.failing.begin(), outcome.failing.end(),
      [](const record::Failing& failing) { return failing.check.starts_with("D01."); });
}

/// Measures the rate of a failure: starts that, goes on with it, or ends it.
void confirm(CaseDecision& decision, const record::PlanLine& line, const PolicyOptions& options,
             const RunStanding& standing) {
  if (options.confirmations == 0 || !has_rate(line)) return;
  std::optional<Confirmation>& known = decision.history.confirmation;
  if (known) {
    // The record of each confirmation says what is known by then, so that none of them alone can
    // be taken for the verdict of the case.
    known->seen.push_back(decision.outcome);
    decision.outcome = reports::confirm(known->failure, known->seen);
  } else {
    if (!failed(decision.outcome) || standing.ending) return;
    known = Confirmation{decision.outcome, {}};
  }
  const int seen = static_cast<int>(known->seen.size());
  if (seen == options.confirmations || standing.ending) return known.reset();
  decision.next = NextAttempt::confirmation;
  decision.again = "confirmation " + std::to_string(seen + 1) + " of " +
                   std::to_string(options.confirmations) + " of " +
                   std::string(known->failure.verdict.text());
}

/// An attempt that neither diagnoses nor confirms an earlier one.
void decide_first(CaseDecision& decision, const JudgedAttempt& attempt,
                  const PolicyOptions& options, const RunStanding& standing) {
  const record::Context& context = attempt.context;
  // What failed may have left something in its processes.
  decision.end_batch = failed(attempt.outcome);
  if (attempt.outcome.verdict.in("infra")) {
    if (++decision.history.infra_attempts >= kInfraAttempts || standing.ending ||
        !standing.fits_elsewhere)
      return;
    decision.next = NextAttempt::elsewhere;
    decision.again = ended_attempt(context.attempt, attempt.outcome.verdict);
  } else if (failed(attempt.outcome) && is_diagnosed(context.isolation, attempt.line) &&
             !standing.ending) {
    decision.history.failed_in_batch = attempt.outcome;
    decision.next = NextAttempt::alone;
    decision.again = failed_in_batch(context.batch, attempt.outcome.verdict);
  } else {
    confirm(decision, attempt.line, options, standing);
  }
}

std::optional<RunEnd> run_end(const reports::Outcome& outcome, const PolicyOptions& options,
                              const RunStanding& before) {
  if (!failed(outcome) || before.ending || before.last_case) return std::nullopt;
  RunStanding now = before;
  now.count(outcome);
  if (options.max_fail > 0 && now.product_failures >= options.max_fail)
    return RunEnd{reports::Ending::max_fail, "--max-fail " + std::to_string(options.max_fail) +
                                                 " is reached: running cases end, no others start"};
  const int bound = outcome.verdict.in("fail.hang") ? kCircuitBreakerHangs : kCircuitBreaker;
  if (now.final_verdicts.size() == 1 && now.final_verdicts.begin()->second == bound)
    return RunEnd{reports::Ending::circuit_breaker,
                  "the first " + std::to_string(bound) + " cases all ended " +
                      std::string(outcome.verdict.text()) +
                      ": the run is stopped, because the machine or the build is broken and not a "
                      "combination"};
  return std::nullopt;
}

}  // namespace

PolicyOptions policy_options(const record::Run& run) {
  // shrink asks of many cases whether they fail, and most of them do.
  return {.confirmations = run.options.confirm,
          .max_fail = run.options.max_fail,
          .search_divergence = run.profile != "shrink",
          .search_planted_divergence = run.profile == "repro"};
}

void RunStanding::count(const reports::Outcome& outcome) {
  ++final_verdicts[std::string(outcome.verdict.text())];
  product_failures += failed(outcome);
}

CaseDecision decide(const JudgedAttempt& attempt, CaseHistory history, const PolicyOptions& options,
                    const RunStanding& standing) {
  CaseDecision decision{.outcome = attempt.outcome, .history = std::move(history)};
  if (decision.history.failed_in_batch && attempt.context.isolation == "process") {
    decision.outcome = reports::fold(*decision.history.failed_in_batch, attempt.outcome);
    decision.history.failed_in_batch.reset();
    confirm(decision, attempt.line, options, standing);
  } else if (decision.history.confirmation) {
    confirm(decision, attempt.line, options, standing);
  } else {
    decide_first(decision, attempt, options, standing);
  }
  if (!decision.verdict_stands()) return decision;
  decision.run_end = run_end(decision.outcome, options, standing);
  decision.search_divergence =
      options.search_divergence && !standing.ending && !decision.run_end &&
      standing.divergence_searches < kDivergenceSearches &&
      diverges(decision.outcome, attempt.line, options.search_planted_divergence);
  return decision;
}

bool wants_diagnosis(const record::Record& record, const record::PlanLine& line) {
  return failed(record.verdict, record.rule) && is_diagnosed(record.context.isolation, line);
}

std::string why_alone(const record::Record& first) {
  return failed_in_batch(first.context.batch, first.verdict);
}

std::string why_retry(const record::Record& last) {
  return ended_attempt(last.attempt, last.verdict);
}

reports::Outcome outcome_of(const record::Record& record) {
  return {.verdict = record.verdict,
          .observed = record.observed,
          .rule = record.rule,
          .reason = record.reason,
          .failing = record.failing,
          .counts = record.checks,
          .phase = record.phase};
}

}  // namespace graphproof::launcher
