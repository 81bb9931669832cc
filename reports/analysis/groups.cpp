#include "reports/analysis/groups.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <set>
#include <tuple>

#include "reports/outcome/order.h"
#include "reports/outcome/outcome.h"

namespace graphproof::reports {
namespace {

using nlohmann::json;

constexpr std::size_t kMostAxes = 6;  // of one expression, because people have to read it

/// The value as a literal of the expression language.
std::string literal(const json& value) {
  if (value.is_null()) return "absent";
  if (value.is_array()) {
    std::string set = "{";
    for (const json& one : value) set += (set.size() > 1 ? ", " : "") + literal(one);
    return set + "}";
  }
  if (!value.is_string()) return value.dump();
  const std::string text = value.get<std::string>();
  const bool word = !text.empty() && std::isdigit(static_cast<unsigned char>(text[0])) == 0 &&
                    std::all_of(text.begin(), text.end(),
                                [](unsigned char c) { return std::isalnum(c) || c == '_'; });
  // A call, such as full(block, 2), is a literal too.
  const bool call = text.ends_with(")") && text.find('(') != std::string::npos &&
                    text.find_first_of("\"'\\") == std::string::npos;
  return word || call ? text : json(text).dump();
}

std::string equation(const std::string& axis, const std::set<json>& values) {
  if (values.size() == 1) return axis + " == " + literal(*values.begin());
  const bool plain = std::none_of(values.begin(), values.end(), [](const json& value) {
    return value.is_array() || value.is_null();
  });
  std::string text;
  for (const json& value : values)
    text += (text.empty() ? ""
             : plain      ? ", "
                          : " or ") +
            (plain ? literal(value) : axis + " == " + literal(value));
  return plain ? axis + " in {" + text + "}" : "(" + text + ")";
}

/// The value of an axis; null if the case does not have it.
const json& value_of(const CaseResult& one, const std::string& axis) {
  static const json kNone;
  const auto found = one.plan.axes.find(axis);
  return found == one.plan.axes.end() ? kNone : *found;
}

struct Condition {
  std::string axis;
  std::set<json> values;

  bool holds(const CaseResult& one) const { return values.contains(value_of(one, axis)); }
};

/// A condition for each axis whose values differ between the group and the others.
std::vector<Condition> conditions(const RunResult& run, const std::vector<std::size_t>& inside,
                                  const std::vector<std::size_t>& others) {
  std::vector<Condition> all;
  for (const auto& [axis, unused] : run.cases[inside.front()].plan.axes.items()) {
    Condition one{.axis = axis, .values = {}};
    for (const std::size_t index : inside) one.values.insert(value_of(run.cases[index], axis));
    const bool distinguishes = std::any_of(others.begin(), others.end(), [&](std::size_t index) {
      return !one.holds(run.cases[index]);
    });
    if (distinguishes) all.push_back(std::move(one));
  }
  return all;
}

std::vector<std::size_t> those_that_hold(const RunResult& run,
                                         const std::vector<std::size_t>& cases,
                                         const std::vector<Condition>& all,
                                         const Condition* except = nullptr) {
  std::vector<std::size_t> kept;
  for (const std::size_t index : cases)
    if (std::all_of(all.begin(), all.end(), [&](const Condition& one) {
          return &one == except || one.holds(run.cases[index]);
        }))
      kept.push_back(index);
  return kept;
}

/// Adds the condition that leaves the fewest of `left`. False if none leaves fewer.
bool add_best(const RunResult& run, const std::vector<Condition>& candidates,
              std::vector<std::size_t>& left, std::vector<Condition>& chosen) {
  const Condition* best = nullptr;
  std::vector<std::size_t> fewest = left;
  for (const Condition& one : candidates) {
    std::vector<std::size_t> kept = those_that_hold(run, left, {one});
    // Of equally good conditions the one with fewer values says more.
    const bool better =
        kept.size() < fewest.size() || (best != nullptr && kept.size() == fewest.size() &&
                                        one.values.size() < best->values.size());
    if (!better) continue;
    best = &one;
    fewest = std::move(kept);
  }
  if (best == nullptr) return false;
  chosen.push_back(*best);
  left = std::move(fewest);
  return true;
}

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

CommonValues common_values(const RunResult& run, const std::vector<std::size_t>& inside,
                           const std::vector<std::size_t>& considered) {
  const std::set<std::size_t> members(inside.begin(), inside.end());
  std::vector<std::size_t> others;
  for (const std::size_t index : considered)
    if (!members.contains(index)) others.push_back(index);
  CommonValues common{.expression = {},
                      .inside = static_cast<int>(inside.size()),
                      .outside = static_cast<int>(others.size()),
                      .others = static_cast<int>(others.size())};
  if (inside.size() < 2 || others.empty()) return common;

  const std::vector<Condition> candidates = conditions(run, inside, others);
  std::vector<Condition> chosen;
  std::vector<std::size_t> left = others;
  while (!left.empty() && chosen.size() < kMostAxes && add_best(run, candidates, left, chosen)) {
  }
  // A later condition can make an earlier one needless.
  for (std::size_t i = 0; i < chosen.size();) {
    const bool needless =
        chosen.size() > 1 && those_that_hold(run, others, chosen, &chosen[i]).size() == left.size();
    if (needless)
      chosen.erase(chosen.begin() + static_cast<std::ptrdiff_t>(i));
    else
      ++i;
  }
  std::sort(chosen.begin(), chosen.end(), [](const Condition& a, const Condition& b) {
    return std::tie(a.axis, a.values) < std::tie(b.axis, b.values);
  });
  for (const Condition& one : chosen)
    common.expression +=
        (common.expression.empty() ? "" : " and ") + equation(one.axis, one.values);
  common.outside = static_cast<int>(left.size());
  return common;
}

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
    const Signature key = signature_of(run.cases[index]);
    auto found = std::find_if(groups.begin(), groups.end(), [&](const FailureGroup& group) {
      return group.expected == expected && group.signature == key;
    });
    if (found == groups.end())
      found = groups.insert(groups.end(), {.signature = key, .expected = expected});
    found->cases.push_back(index);
  };
  for (const CaseResult* one : failures_first(run)) add(index_of.at(one->plan.id), false);
  for (std::size_t i = 0; i < run.cases.size(); ++i)
    if (run.cases[i].record.verdict.in("xfail")) add(i, true);
  for (FailureGroup& group : groups) {
    std::sort(group.cases.begin(), group.cases.end());
    group.common = common_values(run, group.cases, considered);
  }
  return groups;
}

}  // namespace graphproof::reports
