#include "matrix/plan/row_truth.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

namespace graphproof::matrix {
namespace {

constexpr std::size_t kLargestTable = std::size_t{1}
                                      << 20;  // entries of a truth table, a byte each

// An expression whose inputs come from the states of a row. Inputs that do not vary are bound once.
class BoundExpression {
 public:
  // `absent_as_default`: an axis that is off has its default, as in a case; otherwise it is absent.
  BoundExpression(const Expression& expression, const std::vector<VaryingAxis>& axes,
                  const Machine& machine, bool absent_as_default)
      : expression_(expression), axes_(&axes), absent_as_default_(absent_as_default) {
    for (const Input& input : expression_.inputs()) {
      values_.push_back(input.machine ? variable_value(machine, input.name) : input.default_value);
      const auto axis = std::find_if(axes.begin(), axes.end(), [&](const VaryingAxis& candidate) {
        return !input.machine && candidate.name == input.name;
      });
      if (axis != axes.end())
        reads_.push_back(
            {.axis = static_cast<std::size_t>(axis - axes.begin()), .input = values_.size() - 1});
    }
  }

  Truth holds(const States& states) {
    for (const Read& read : reads_) {
      const std::vector<Value>& values = (*axes_)[read.axis].values;
      if (states[read.axis] < values.size())
        values_[read.input] = values[states[read.axis]];
      else
        values_[read.input] =
            absent_as_default_ ? expression_.inputs()[read.input].default_value : Value(Absent{});
    }
    return expression_.holds(values_);
  }

  void add_axes(std::set<std::size_t>& axes) const {
    for (const Read& read : reads_) axes.insert(read.axis);
  }

 private:
  struct Read {
    std::size_t axis, input;
  };
  Expression expression_;
  const std::vector<VaryingAxis>* axes_;
  bool absent_as_default_;
  std::vector<Value> values_;
  std::vector<Read> reads_;
};

// Whether a row is of one of some subjects; in it, an axis `subject` that is off has its default.
class OfSubjects {
 public:
  OfSubjects(std::function<bool(std::string_view)> among, const std::vector<VaryingAxis>& axes)
      : among_(std::move(among)), axes_(&axes) {
    const auto subject = std::ranges::find(axes, "subject", &VaryingAxis::name);
    if (subject != axes.end()) index_ = static_cast<std::size_t>(subject - axes.begin());
  }

  bool holds(const States& states) const {
    if (!index_) return among_(kReference);
    const std::vector<Value>& values = (*axes_)[*index_].values;
    return among_(states[*index_] < values.size()
                      ? std::string_view(std::get<std::string>(values[states[*index_]]))
                      : kReference);
  }

  void add_axes(std::set<std::size_t>& axes) const {
    if (index_) axes.insert(*index_);
  }

 private:
  std::function<bool(std::string_view)> among_;
  const std::vector<VaryingAxis>* axes_;
  std::optional<std::size_t> index_;
};

}  // namespace

std::size_t state_count(const VaryingAxis& axis) {
  return axis.values.size() + (axis.when ? 1 : 0);
}

RowTruth::RowTruth(const std::vector<VaryingAxis>& axes, const std::set<std::size_t>& reads,
                   std::function<Truth(const States&)> evaluate)
    : evaluate_(std::move(evaluate)), reads_(reads.begin(), reads.end()) {
  std::size_t entries = 1;
  for (const std::size_t axis : reads) {
    const std::size_t states = state_count(axes[axis]);
    dimensions_.push_back({.axis = axis, .stride = entries, .states = states});
    entries = entries > kLargestTable ? entries : entries * states;
  }
  // With too many entries, each row is evaluated instead.
  if (entries > kLargestTable) return;
  table_.resize(entries);
  States states(axes.size(), 0);
  for (std::size_t entry = 0; entry < entries; ++entry) {
    for (const Dimension& dimension : dimensions_)
      states[dimension.axis] = entry / dimension.stride % dimension.states;
    table_[entry] = evaluate_(states);
  }
}

Truth RowTruth::of(const States& states) const {
  if (table_.empty()) return evaluate_(states);
  std::size_t entry = 0;
  for (const Dimension& dimension : dimensions_) entry += dimension.stride * states[dimension.axis];
  return table_[entry];
}

bool RowTruth::always(Truth truth) const {
  return !table_.empty() &&
         std::all_of(table_.begin(), table_.end(), [&](Truth entry) { return entry == truth; });
}

RowTruth condition_truth(const Expression& expression, const std::vector<VaryingAxis>& axes,
                         const Machine& machine) {
  auto bound = std::make_shared<BoundExpression>(expression, axes, machine, false);
  std::set<std::size_t> reads;
  bound->add_axes(reads);
  return RowTruth(axes, reads, [bound](const States& states) { return bound->holds(states); });
}

std::vector<RowTruth> rule_truths(const Rule& rule, const std::vector<VaryingAxis>& axes,
                                  const Machine& machine) {
  struct Part {
    BoundExpression rule_when, when, require;
  };
  std::vector<RowTruth> truths;
  const OfSubjects of_subjects([&rule](std::string_view subject) { return rule.binds(subject); },
                               axes);
  for (const RulePart& part : rule.parts) {
    const auto bind = [&](const Expression& expression) {
      return BoundExpression(expression, axes, machine, true);
    };
    const auto bound =
        std::make_shared<Part>(Part{bind(rule.when), bind(part.when), bind(part.require)});
    std::set<std::size_t> reads;
    for (const BoundExpression* expression : {&bound->rule_when, &bound->when, &bound->require})
      expression->add_axes(reads);
    if (!rule.subjects.empty()) of_subjects.add_axes(reads);
    truths.emplace_back(axes, reads, [bound, of_subjects](const States& states) {
      if (!of_subjects.holds(states)) return Truth::no;
      const Truth applies = bound->rule_when.holds(states),
                  part_applies = bound->when.holds(states);
      if (applies == Truth::no || part_applies == Truth::no) return Truth::no;
      const Truth holds = bound->require.holds(states);
      if (holds == Truth::yes) return Truth::no;
      return applies == Truth::yes && part_applies == Truth::yes && holds == Truth::no
                 ? Truth::yes
                 : Truth::unknown;
    });
  }
  return truths;
}

RowTruth capability_truth(const Capability& capability, const std::vector<VaryingAxis>& axes,
                          const Machine& machine) {
  const OfSubjects of_subjects(
      [&capability](std::string_view subject) {
        return std::ranges::find(capability.subjects, subject) != capability.subjects.end();
      },
      axes);
  const auto bound = std::make_shared<BoundExpression>(capability.require, axes, machine, true);
  std::set<std::size_t> reads;
  bound->add_axes(reads);
  of_subjects.add_axes(reads);
  return RowTruth(axes, reads, [bound, of_subjects](const States& states) {
    return !of_subjects.holds(states) || bound->holds(states) == Truth::yes ? Truth::yes
                                                                            : Truth::no;
  });
}

bool RowTruth::sometimes(Truth truth) const {
  return std::find(table_.begin(), table_.end(), truth) != table_.end();
}

Case case_of(const States& states, const std::vector<VaryingAxis>& axes, const AxisTable& table) {
  Case result;
  for (std::size_t i = 0; i < states.size(); ++i)
    if (states[i] < axes[i].values.size())
      set_value(table, result, axes[i].name, axes[i].values[states[i]]);
  return result;
}

}  // namespace graphproof::matrix
