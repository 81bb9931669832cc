#include "reports/outcome/order.h"

#include <algorithm>

#include "reports/outcome/outcome.h"

namespace graphproof::reports {
namespace {

std::size_t rank_of(const CaseResult& one) {
  const record::ExitCode code = exit_code(one.record.verdict, one.record.rule);
  // Readers look for product failures first, although an interruption has precedence as the exit
  // code of the run.
  if (code == record::ExitCode::product) return 0;
  const auto found =
      std::find(record::kExitPrecedence.begin(), record::kExitPrecedence.end(), code);
  return 1 + static_cast<std::size_t>(found - record::kExitPrecedence.begin());
}

}  // namespace

bool needs_attention(const CaseResult& one) {
  return exit_code(one.record.verdict, one.record.rule) != record::ExitCode::ok;
}

std::vector<const CaseResult*> failures_first(const RunResult& run) {
  std::vector<const CaseResult*> cases;
  for (const CaseResult& one : run.cases)
    if (needs_attention(one)) cases.push_back(&one);
  std::stable_sort(cases.begin(), cases.end(), [](const CaseResult* left, const CaseResult* right) {
    if (rank_of(*left) != rank_of(*right)) return rank_of(*left) < rank_of(*right);
    return left->record.verdict.severity() < right->record.verdict.severity();
  });
  return cases;
}

std::vector<const CaseResult*> acceptable(const RunResult& run) {
  std::vector<const CaseResult*> cases;
  for (const CaseResult& one : run.cases)
    if (!needs_attention(one)) cases.push_back(&one);
  return cases;
}

}  // namespace graphproof::reports
