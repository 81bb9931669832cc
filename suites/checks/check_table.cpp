#include "suites/checks/check_table.h"

#include <algorithm>
#include <stdexcept>

#include "suites/checks/attempt/concat.h"
#include "suites/checks/attempt/judgement.h"
#include "suites/checks/figures.h"
#include "suites/checks/harmless.h"

namespace graphproof::checks {
namespace {

record::CheckResult too_old(const Check& check, const matrix::CheckEntry& entry,
                            const Attempt& attempt) {
  return {.check = std::string(check.name),
          .result = record::Result::not_applicable,
          .rank = std::nullopt,
          .message = {.what = "",
                      .got = concat("evidence of revision ", evidence_revision(attempt)),
                      .want = concat("revision ", entry.since, " or newer"),
                      .why = "evidence of that revision lacks what this check reads",
                      .next = "nothing to do; run the case again for an answer"}};
}

record::CheckResult judged(const Check& check, const matrix::CheckEntry& entry,
                           const Attempt& attempt) {
  Judgement judgement(check.name, attempt);
  if (const auto refusal = entry.of_refused_cases ? std::nullopt : refusal_of(attempt))
    judgement.not_applicable(concat("the case was refused by rule ", refusal->rule, " in phase ",
                                    record::name(refusal->phase)));
  else if (!attempt.asked.contains(check.name))
    judgement.not_applicable(
        concat("the check applies to cases with `", entry.judged_when.text(), "`"));
  return judgement.settled() ? judgement.result("", "") : check.function(judgement, attempt);
}

}  // namespace

record::CheckResult run_check(const Check& check, const matrix::CheckEntry& entry,
                              const Attempt& attempt) {
  record::CheckResult result = evidence_revision(attempt) < entry.since
                                   ? too_old(check, entry, attempt)
                                   : judged(check, entry, attempt);
  if (result.message.what.empty()) result.message.what = entry.states;
  const auto& required = attempt.context.required_checks;
  if (result.result == record::Result::not_applicable &&
      std::ranges::find(required, check.name) != required.end()) {
    result.result = record::Result::unexercised;
    result.message.next = concat("./graphproof explain ", attempt.context.run_id, "/",
                                 attempt.context.case_id, ": the case requires this check");
  }
  return result;
}

record::Checks judge(const Attempt& attempt, const matrix::CheckTable& table,
                     const std::set<std::string>& dropped) {
  for (const std::string& name : dropped) {
    if (!table.find(name))
      throw std::invalid_argument(concat("--drop ", name, ": there is no such check"));
  }
  record::Checks checks;
  checks.case_id = attempt.context.case_id;
  checks.attempt = attempt.context.attempt;
  for (const RankFiles& files : attempt.ranks) checks.ranks.push_back(rank_progress(files));
  checks.figures = figures(attempt);
  checks.harmless_because = harmless_because(attempt);
  for (const Check& check : all_checks()) {
    const matrix::CheckEntry* entry = table.find(check.name);
    if (!entry)
      throw std::logic_error(
          concat("check ", check.name, " has no row in matrix/tables/checks.json"));
    if (!dropped.contains(std::string(check.name)))
      checks.checks.push_back(run_check(check, *entry, attempt));
  }
  return checks;
}

}  // namespace graphproof::checks
