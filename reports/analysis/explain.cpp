#include "reports/analysis/explain.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <set>

namespace graphproof::reports {
namespace {

using nlohmann::json;
using Indexes = std::vector<std::size_t>;

constexpr std::size_t kMostConditions = 6;

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

}  // namespace

/// That the value of an axis is one of some.
struct AxisValues::Condition {
  const Column* column = nullptr;
  std::vector<bool> allowed;  // by value

  bool holds(std::size_t index) const { return allowed[column->of[index]]; }
  std::size_t size() const {
    return static_cast<std::size_t>(std::count(allowed.begin(), allowed.end(), true));
  }
  std::size_t count(const Indexes& cases) const {
    return static_cast<std::size_t>(
        std::count_if(cases.begin(), cases.end(), [&](std::size_t index) { return holds(index); }));
  }
  Indexes kept(const Indexes& cases) const {
    Indexes those;
    for (const std::size_t index : cases)
      if (holds(index)) those.push_back(index);
    return those;
  }
  std::string text() const {
    std::set<json> values;
    for (std::size_t i = 0; i < allowed.size(); ++i)
      if (allowed[i]) values.insert(column->values[i]);
    return equation(column->axis, values);
  }
};

AxisValues::AxisValues(const std::vector<const CaseResult*>& cases) {
  std::map<std::string, std::map<json, std::size_t>, std::less<>> numbers;
  std::map<std::string, Indexes, std::less<>> of;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const json& axes = cases[i]->plan.axes;
    for (auto axis = axes.begin(); axis != axes.end(); ++axis) {
      auto& values = numbers[axis.key()];
      if (values.empty()) {
        values.emplace(json(), 0);
        of[axis.key()].resize(cases.size());
      }
      of.find(axis.key())->second[i] = values.try_emplace(*axis, values.size()).first->second;
    }
  }
  for (auto& [axis, values] : numbers) {
    Column column{.axis = axis,
                  .values = std::vector<json>(values.size()),
                  .of = std::move(of.find(axis)->second)};
    for (const auto& [value, number] : values) column.values[number] = value;
    columns_.push_back(std::move(column));
  }
}

/// Of each axis the values of the set, if other cases have others; with HoldsFor::most also each
/// value that half of the set has.
std::vector<AxisValues::Condition> AxisValues::candidates(const Indexes& set, const Indexes& others,
                                                          HoldsFor holds_for) const {
  std::vector<Condition> all;
  for (const Column& column : columns_) {
    Indexes counts(column.values.size());
    for (const std::size_t index : set) ++counts[column.of[index]];
    const auto add = [&](std::size_t fewest) {
      Condition one{.column = &column, .allowed = std::vector<bool>(counts.size())};
      for (std::size_t i = 0; i < counts.size(); ++i) one.allowed[i] = counts[i] >= fewest;
      if (one.size() > 0 && one.count(others) < others.size()) all.push_back(std::move(one));
    };
    add(1);
    if (holds_for == HoldsFor::all) continue;
    for (std::size_t value = 0; value < counts.size(); ++value) {
      if (2 * counts[value] < set.size() || counts[value] == set.size()) continue;
      Condition one{.column = &column, .allowed = std::vector<bool>(counts.size())};
      one.allowed[value] = true;
      all.push_back(std::move(one));
    }
  }
  return all;
}

Explanation AxisValues::explain(const Indexes& set, const Indexes& others,
                                HoldsFor holds_for) const {
  const auto count = [](const Indexes& cases) { return static_cast<int>(cases.size()); };
  Explanation none{
      .expression = "", .inside = count(set), .outside = count(others), .others = count(others)};
  if (set.empty() || others.empty()) return none;

  const std::vector<Condition> all = candidates(set, others, holds_for);
  std::vector<const Condition*> chosen;
  Indexes inside = set, outside = others;
  // About how many cases a condition is wrong that keeps so many of the set and of the others.
  const auto wrong = [&](std::size_t of_set, std::size_t of_others) {
    return set.size() - of_set + of_others;
  };
  while (!outside.empty() && chosen.size() < kMostConditions) {
    const Condition* best = nullptr;
    std::size_t fewest = wrong(inside.size(), outside.size());
    for (const Condition& one : all) {
      const std::size_t now = wrong(one.count(inside), one.count(outside));
      // Of equally good conditions the one with fewer values says more.
      if (now < fewest || (best != nullptr && now == fewest && one.size() < best->size())) {
        best = &one;
        fewest = now;
      }
    }
    if (best == nullptr) break;
    chosen.push_back(best);
    inside = best->kept(inside);
    outside = best->kept(outside);
  }
  // A later condition can make an earlier one needless.
  for (std::size_t i = 0; i < chosen.size();) {
    Indexes inside_without = set, outside_without = others;
    for (const Condition* one : chosen) {
      if (one == chosen[i]) continue;
      inside_without = one->kept(inside_without);
      outside_without = one->kept(outside_without);
    }
    const bool needless =
        chosen.size() > 1 && wrong(inside_without.size(), outside_without.size()) <=
                                 wrong(inside.size(), outside.size());
    if (!needless) {
      ++i;
      continue;
    }
    chosen.erase(chosen.begin() + static_cast<std::ptrdiff_t>(i));
    inside = std::move(inside_without);
    outside = std::move(outside_without);
  }
  if (holds_for == HoldsFor::most && wrong(inside.size(), outside.size()) >= set.size())
    return none;
  std::sort(chosen.begin(), chosen.end(), [](const Condition* left, const Condition* right) {
    return left->column->axis < right->column->axis;
  });
  Explanation found{.expression = "",
                    .inside = count(inside),
                    .outside = count(outside),
                    .others = count(others)};
  for (const Condition* one : chosen)
    found.expression += (found.expression.empty() ? "" : " and ") + one->text();
  return found;
}

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

}  // namespace graphproof::reports
