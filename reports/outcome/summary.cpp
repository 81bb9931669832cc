#include "reports/outcome/summary.h"

#include "reports/outcome/outcome.h"

namespace graphproof::reports {
namespace {

using record::ExitCode;
using record::Result;
using record::operator""_verdict;

enum class Share { ran, rejected, skipped, not_run };

/// Which term of planned = ran + rejected + skipped + not_run a case belongs to.
Share share(const CaseResult& one) {
  const record::Verdict verdict = one.record.verdict;
  if (verdict == "pass.rejected"_verdict) return Share::rejected;
  if (verdict.in("skipped") || one.plan.skip) return Share::skipped;
  if (verdict == "not_run"_verdict || verdict.in("infra")) return Share::not_run;
  return Share::ran;
}

}  // namespace

bool lost_evidence(const CaseResult& one) {
  return one.record.checks.pass + one.record.checks.fail > 0 && one.checks.empty();
}

record::Coverage coverage(const RunResult& run) {
  record::Coverage coverage;
  for (const CaseResult& one : run.cases) {
    ++coverage.planned;
    switch (share(one)) {
      case Share::rejected:
        ++coverage.rejected;
        break;
      case Share::skipped:
        ++coverage.skipped;
        break;
      case Share::not_run:
        ++coverage.not_run;
        break;
      case Share::ran:
        ++coverage.ran;
        for (const std::string& check : one.plan.required_checks) {
          ++coverage.required_checks;
          const auto found = one.checks.find(check);
          const bool shown = found != one.checks.end() &&
                             (found->second == Result::pass || found->second == Result::fail);
          if (!shown) ++coverage.unexercised;
        }
    }
  }
  return coverage;
}

record::Summary summary(const RunResult& run) {
  record::Summary result{.run_id = run.run.run_id,
                         .profile = run.run.profile,
                         .device = run.run.device,
                         .finished = run.ending == Ending::finished,
                         .stack = run.run.stack,
                         .wall_seconds = run.wall_seconds,
                         .counts = {},
                         .exit_code = record::value(exit_code(run)),
                         .coverage = coverage(run),
                         .cases = {},
                         .ending = std::string(name(run.ending))};
  for (const CaseResult& one : run.cases) ++result.counts[std::string(one.record.verdict.text())];
  return result;
}

void put_summary(const RunResult& run, const std::function<void(std::string_view)>& put) {
  const auto case_of = [&](std::size_t index) -> record::SummaryCase {
    const CaseResult& one = run.cases[index];
    return {.id = one.plan.id,
            .name = one.plan.name,
            .axes = one.plan.axes,
            .verdict = one.record.verdict,
            .isolation = one.record.context.isolation,
            .ranks = one.plan.ranks,
            .seconds = one.record.seconds,
            .checks = one.checks};
  };
  record::put_summary(summary(run), run.cases.size(), case_of, put);
}

record::ExitCode exit_code(const RunResult& run) {
  ExitCode code = ExitCode::ok;
  bool nothing_ran = true;
  for (const CaseResult& one : run.cases) {
    code = record::stronger(code, exit_code(one.record.verdict, one.record.rule));
    if (share(one) != Share::skipped) nothing_ran = false;
    if (lost_evidence(one)) code = record::stronger(code, ExitCode::coverage);
  }
  if (nothing_ran) code = record::stronger(code, ExitCode::coverage);
  if (run.ending == Ending::interrupted || run.ending == Ending::budget)
    code = record::stronger(code, ExitCode::interrupted);
  if (run.ending == Ending::disk) code = record::stronger(code, ExitCode::infrastructure);
  if (run.ending == Ending::circuit_breaker || run.ending == Ending::max_fail)
    code = record::stronger(code, ExitCode::coverage);
  return code;
}

}  // namespace graphproof::reports
