#include "reports/analysis/groups.h"

#include <algorithm>
#include <cctype>
#include <iterator>
#include <map>
#include <string>

#include "reports/outcome/order.h"
#include "reports/outcome/outcome.h"

namespace graphproof::reports {
namespace {

/// `text` with # for each number.
std::string without_numbers(const std::string& text) {
  std::string kept;
  for (const char c : text) {
    const bool digit = std::isdigit(static_cast<unsigned char>(c)) != 0;
    if (!digit)
      kept += c;
    else if (kept.empty() || kept.back() != '#')
      kept += '#';
  }
  return kept;
}

Signature signature_of(const CaseResult& one) {
  if (one.record.observed.in("fail")) return signature(one.record);
  return {.verdict = std::string(one.record.verdict.text()),
          .check = {},
          .what = without_numbers(one.record.reason)};
}

}  // namespace

std::vector<FailureGroup> failure_groups(const RunResult& run) {
  std::map<std::string, std::size_t> index_of;
  std::vector<std::size_t> considered;
  for (std::size_t i = 0; i < run.cases.size(); ++i) {
    const CaseResult& one = run.cases[i];
    index_of[one.plan.id] = i;
    const bool no_result = one.record.verdict.in("skipped") || one.record.verdict.in("not_run") ||
                           one.record.verdict.in("infra");
    if (!no_result) considered.push_back(i);
  }
  std::vector<FailureGroup> groups;
  const auto add = [&](std::size_t index, bool expected) {
    const record::Record& record = run.cases[index].record;
    const Signature key = signature_of(run.cases[index]);
    const record::Verdict verdict = expected ? record.observed : record.verdict;
    auto found = std::find_if(groups.begin(), groups.end(), [&](const FailureGroup& group) {
      return group.expected == expected && group.verdict == verdict && group.signature == key;
    });
    if (found == groups.end())
      found =
          groups.insert(groups.end(), {.signature = key, .verdict = verdict, .expected = expected});
    found->cases.push_back(index);
  };
  for (const CaseResult* one : failures_first(run)) add(index_of.at(one->plan.id), false);
  for (std::size_t i = 0; i < run.cases.size(); ++i)
    if (run.cases[i].record.verdict.in("xfail")) add(i, true);
  if (groups.empty()) return groups;
  std::vector<const CaseResult*> all;
  for (const CaseResult& one : run.cases) all.push_back(&one);
  const AxisValues values(all);
  for (FailureGroup& group : groups) {
    std::sort(group.cases.begin(), group.cases.end());
    std::vector<std::size_t> others;
    std::set_difference(considered.begin(), considered.end(), group.cases.begin(),
                        group.cases.end(), std::back_inserter(others));
    group.common =
        group.cases.size() < 2 ? Explanation{} : values.explain(group.cases, others, HoldsFor::all);
  }
  return groups;
}

}  // namespace graphproof::reports
