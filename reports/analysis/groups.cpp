#include "reports/analysis/groups.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <set>

#include "reports/outcome/order.h"
#include "reports/outcome/outcome.h"

namespace graphproof::reports {
namespace {

using nlohmann::json;

constexpr std::size_t kMostAxes = 6;  // of one expression, because people have to read it

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

/// The values of all axes in all cases as numbers, because they are compared very often.
class ValueTable {
 public:
  explicit ValueTable(const RunResult& run) {
    std::map<std::string, std::map<json, int>> numbers;
    for (const CaseResult& one : run.cases)
      for (const auto& [axis, value] : one.plan.axes.items()) numbers[axis].emplace(value, 0);
    for (auto& [axis, values] : numbers) {
      // A case that lacks the axis counts as absent.
      values.emplace(json(), 0);
      Column column{.axis = axis, .values = {}, .of = {}};
      for (auto& [value, number] : values) {
        number = static_cast<int>(column.values.size());
        column.values.push_back(value);
      }
      for (const CaseResult& one : run.cases) {
        const auto found = one.plan.axes.find(axis);
        column.of.push_back(values.at(found == one.plan.axes.end() ? json() : *found));
      }
      columns_.push_back(std::move(column));
    }
  }

  struct Column {
    std::string axis;
    std::vector<json> values;
    std::vector<int> of;  // by case: an index of `values`
  };
  const std::vector<Column>& columns() const { return columns_; }

 private:
  std::vector<Column> columns_;
};

/// That the value of an axis is one of those which a group has.
struct Condition {
  const ValueTable::Column* column = nullptr;
  std::vector<bool> allowed;  // by value

  bool holds(std::size_t index) const {
    return allowed[static_cast<std::size_t>(column->of[index])];
  }
  std::size_t size() const {
    return static_cast<std::size_t>(std::count(allowed.begin(), allowed.end(), true));
  }
  std::string text() const {
    std::set<json> values;
    for (std::size_t i = 0; i < allowed.size(); ++i)
      if (allowed[i]) values.insert(column->values[i]);
    return equation(column->axis, values);
  }
};

/// A condition for each axis whose values differ between the group and the others.
std::vector<Condition> conditions(const ValueTable& table, const std::vector<std::size_t>& inside,
                                  const std::vector<std::size_t>& others) {
  std::vector<Condition> all;
  for (const ValueTable::Column& column : table.columns()) {
    Condition one{.column = &column, .allowed = std::vector<bool>(column.values.size())};
    for (const std::size_t index : inside)
      one.allowed[static_cast<std::size_t>(column.of[index])] = true;
    if (!std::all_of(others.begin(), others.end(),
                     [&](std::size_t index) { return one.holds(index); }))
      all.push_back(std::move(one));
  }
  return all;
}

std::vector<std::size_t> those_that_hold(const std::vector<std::size_t>& cases,
                                         const std::vector<Condition>& all,
                                         const Condition* except = nullptr) {
  std::vector<std::size_t> kept;
  for (const std::size_t index : cases)
    if (std::all_of(all.begin(), all.end(),
                    [&](const Condition& one) { return &one == except || one.holds(index); }))
      kept.push_back(index);
  return kept;
}

/// Adds the condition that leaves the fewest of `left`. False if none leaves fewer.
bool add_best(const std::vector<Condition>& candidates, std::vector<std::size_t>& left,
              std::vector<Condition>& chosen) {
  const Condition* best = nullptr;
  std::vector<std::size_t> fewest = left;
  for (const Condition& one : candidates) {
    std::vector<std::size_t> kept = those_that_hold(left, {one});
    // Of equally good conditions the one with fewer values says more.
    const bool better =
        kept.size() < fewest.size() ||
        (best != nullptr && kept.size() == fewest.size() && one.size() < best->size());
    if (!better) continue;
    best = &one;
    fewest = std::move(kept);
  }
  if (best == nullptr) return false;
  chosen.push_back(*best);
  left = std::move(fewest);
  return true;
}

CommonValues common_values(const ValueTable& table, const std::vector<std::size_t>& inside,
                           const std::vector<std::size_t>& considered) {
  const std::set<std::size_t> members(inside.begin(), inside.end());
  std::vector<std::size_t> others;
  for (const std::size_t index : considered)
    if (!members.contains(index)) others.push_back(index);
  CommonValues common{.expression = {},
                      .outside = static_cast<int>(others.size()),
                      .others = static_cast<int>(others.size())};
  if (inside.size() < 2 || others.empty()) return common;

  const std::vector<Condition> candidates = conditions(table, inside, others);
  std::vector<Condition> chosen;
  std::vector<std::size_t> left = others;
  while (!left.empty() && chosen.size() < kMostAxes && add_best(candidates, left, chosen)) {
  }
  // A later condition can make an earlier one needless.
  for (std::size_t i = 0; i < chosen.size();) {
    const bool needless =
        chosen.size() > 1 && those_that_hold(others, chosen, &chosen[i]).size() == left.size();
    if (needless)
      chosen.erase(chosen.begin() + static_cast<std::ptrdiff_t>(i));
    else
      ++i;
  }
  std::sort(chosen.begin(), chosen.end(),
            [](const Condition& left_one, const Condition& right_one) {
              return left_one.column->axis < right_one.column->axis;
            });
  for (const Condition& one : chosen)
    common.expression += (common.expression.empty() ? "" : " and ") + one.text();
  common.outside = static_cast<int>(left.size());
  return common;
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
  const ValueTable table(run);
  for (FailureGroup& group : groups) {
    std::sort(group.cases.begin(), group.cases.end());
    group.common = common_values(table, group.cases, considered);
  }
  return groups;
}

}  // namespace graphproof::reports
