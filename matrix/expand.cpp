#include "matrix/expand.h"

#include <algorithm>
#include <map>
#include <set>

namespace graphproof::matrix {
namespace {

constexpr std::int64_t kMostRows = 1'000'000'000;  // of one product; more would be walked for many minutes before anything runs
constexpr std::size_t kLargestTable = std::size_t{1} << 20;  // entries of one constraint's truth table, a byte each

// A condition over product rows, as a table of truths indexed by the states of the axes that it reads; so a row costs
// one lookup for each condition. Conditions over too many states are evaluated row by row.
class RowCondition {
 public:
  // `absent_as_default`: rules judge the case, in which a switched-off axis has its default.
  RowCondition(Expression expression, const std::vector<VaryingAxis>& axes, const Machine& machine, bool absent_as_default)
      : expression_(std::move(expression)), absent_as_default_(absent_as_default), axes_(&axes) {
    std::size_t entries = 1;
    for (const Input& input : expression_.inputs()) {
      values_.push_back(input.machine ? variable_value(machine, input.name) : input.default_value);
      if (input.machine) continue;
      const auto axis = std::find_if(axes.begin(), axes.end(), [&](const VaryingAxis& candidate) { return candidate.name == input.name; });
      if (axis == axes.end()) continue;
      const std::size_t states = axis->values.size() + (axis->when ? 1 : 0);
      dimensions_.push_back({.axis = static_cast<std::size_t>(axis - axes.begin()), .input = values_.size() - 1, .stride = entries, .states = states,
                             .default_value = input.default_value});
      entries = entries > kLargestTable ? entries : entries * states;
    }
    if (entries > kLargestTable) return;
    table_.resize(entries);
    std::vector<std::size_t> states(axes.size(), 0);
    for (std::size_t entry = 0; entry < entries; ++entry) {
      for (const Dimension& dimension : dimensions_) states[dimension.axis] = entry / dimension.stride % dimension.states;
      table_[entry] = evaluate(states);
    }
  }

  // `states[axis]` is the index of the axis's value; one past the last value is absent.
  Truth holds(const std::vector<std::size_t>& states) {
    if (table_.empty()) return evaluate(states);
    std::size_t entry = 0;
    for (const Dimension& dimension : dimensions_) entry += dimension.stride * states[dimension.axis];
    return table_[entry];
  }

 private:
  struct Dimension {
    std::size_t axis, input, stride, states;
    Value default_value;
  };

  Truth evaluate(const std::vector<std::size_t>& states) {
    for (const Dimension& dimension : dimensions_) {
      const std::vector<Value>& values = (*axes_)[dimension.axis].values;
      const std::size_t state = states[dimension.axis];
      if (state < values.size()) values_[dimension.input] = values[state];
      else values_[dimension.input] = absent_as_default_ ? dimension.default_value : Value(Absent{});
    }
    return expression_.holds(values_);
  }

  Expression expression_;
  bool absent_as_default_;
  const std::vector<VaryingAxis>* axes_;
  std::vector<Value> values_;
  std::vector<Dimension> dimensions_;
  std::vector<Truth> table_;
};

// A rule's condition for "breaks": when and not require, of one part.
struct RowRule {
  const Rule* rule;
  std::vector<std::pair<RowCondition, RowCondition>> parts;  // when, require
  RowCondition when;
};

struct RowConstraint {
  const Constraint* constraint;
  RowCondition require;
};

// The odometer over the varying axes with every condition compiled for it.
class Product {
 public:
  Product(const MatrixFile& file, const Catalogue& catalogue, const Machine& machine) : file_(file), catalogue_(catalogue) {
    for (const VaryingAxis& axis : file.axes) {
      if (axis.when) whens_.emplace_back(RowCondition(*axis.when, file.axes, machine, false));
      else whens_.emplace_back(std::nullopt);
    }
    for (const Rule& rule : catalogue.rules.rules()) {
      if (rule.status != "live" || rule.severity != "error") continue;
      RowRule row{.rule = &rule, .parts = {}, .when = RowCondition(rule.when, file.axes, machine, true)};
      for (const RulePart& part : rule.parts)
        row.parts.emplace_back(RowCondition(part.when, file.axes, machine, true), RowCondition(part.require, file.axes, machine, true));
      rules_.push_back(std::move(row));
    }
    for (const Constraint& constraint : file.constraints) constraints_.push_back({&constraint, RowCondition(constraint.require, file.axes, machine, false)});
  }

  std::vector<RowRule>& rules() { return rules_; }
  std::vector<RowConstraint>& constraints() { return constraints_; }

  // Calls visit(states) for each distinct row, the last axis turning fastest.
  template <typename Visit>
  void for_each(Visit visit) {
    std::vector<std::size_t> states(file_.axes.size(), 0);
    std::size_t changed = 0;  // whens of axes before this one still hold for the row
    while (true) {
      for (std::size_t i = changed; i < states.size(); ++i)
        if (whens_[i] && whens_[i]->holds(states) != Truth::yes) states[i] = file_.axes[i].values.size();
      visit(states);
      std::size_t axis = states.size();
      while (axis > 0 && states[axis - 1] + 1 >= file_.axes[axis - 1].values.size()) states[--axis] = 0;
      if (axis == 0) return;
      ++states[axis - 1];
      changed = axis;
    }
  }

  Case to_case(const std::vector<std::size_t>& states) const {
    Case result;
    for (std::size_t i = 0; i < states.size(); ++i)
      if (states[i] < file_.axes[i].values.size()) set_value(catalogue_.axes, result, file_.axes[i].name, file_.axes[i].values[states[i]]);
    return result;
  }

  // Whether the row breaks the rule; unknown when that can't be decided.
  static Truth breaks(RowRule& row, const std::vector<std::size_t>& states) {
    const Truth applies = row.when.holds(states);
    if (applies == Truth::no) return Truth::no;
    Truth result = Truth::no;
    for (auto& [when, require] : row.parts) {
      const Truth part_applies = when.holds(states);
      if (part_applies == Truth::no) continue;
      const Truth holds = require.holds(states);
      if (holds == Truth::yes) continue;
      if (applies == Truth::yes && part_applies == Truth::yes && holds == Truth::no) return Truth::yes;
      result = Truth::unknown;
    }
    return result;
  }

 private:
  const MatrixFile& file_;
  const Catalogue& catalogue_;
  std::vector<std::optional<RowCondition>> whens_;
  std::vector<RowRule> rules_;
  std::vector<RowConstraint> constraints_;
};

}  // namespace

namespace {

void check_size(const MatrixFile& file) {
  std::int64_t rows = 1;
  for (const VaryingAxis& axis : file.axes) {
    if (!__builtin_mul_overflow(rows, static_cast<std::int64_t>(axis.values.size()), &rows) && rows <= kMostRows) continue;
    throw InputError({.what = "the product of the axes is too large", .got = "more than " + std::to_string(kMostRows) + " rows up to axis `" + axis.name + "`",
                      .want = "at most " + std::to_string(kMostRows) + " rows", .why = "every row is looked at before anything runs",
                      .next = "list fewer values, or split the matrix into several files", .place = {.source = file.source}});
  }
}

}  // namespace

Expansion expand(const MatrixFile& file, const Catalogue& catalogue, const Machine& machine, const std::optional<Expression>& where,
                 const std::function<void(ExpandedRow&&)>& row) {
  check_size(file);
  Product product(file, catalogue, machine);
  std::optional<RowCondition> filter;
  if (where) filter.emplace(*where, file.axes, machine, false);
  Expansion result;
  std::vector<std::int64_t> by_rule(product.rules().size()), by_constraint(product.constraints().size());
  std::set<std::string> unknown;

  product.for_each([&](const std::vector<std::size_t>& states) {
    ++result.raw;
    for (std::size_t i = 0; i < product.rules().size(); ++i) {
      const Truth breaks = Product::breaks(product.rules()[i], states);
      if (breaks == Truth::unknown) unknown.insert(product.rules()[i].rule->id);
      if (breaks != Truth::yes) continue;
      ++by_rule[i];
      return;
    }
    const Constraint* skipped = nullptr;
    for (std::size_t i = 0; i < product.constraints().size(); ++i) {
      RowConstraint& constraint = product.constraints()[i];
      const Truth holds = constraint.require.holds(states);
      if (holds == Truth::yes) continue;
      if (holds == Truth::unknown) {
        unknown.insert(constraint.constraint->id);
        continue;
      }
      if (constraint.constraint->as.empty()) {
        ++by_constraint[i];
        return;
      }
      if (skipped == nullptr) skipped = constraint.constraint;
    }
    ++result.valid;
    if (filter && filter->holds(states) != Truth::yes) {
      ++result.filtered;
      return;
    }
    ExpandedRow expanded{.test_case = product.to_case(states), .skip_as = "", .skip_why = ""};
    if (skipped != nullptr) {
      expanded.skip_as = skipped->as;
      expanded.skip_why = skipped->id + ": " + skipped->why;
    }
    row(std::move(expanded));
  });

  for (std::size_t i = 0; i < by_rule.size(); ++i)
    if (by_rule[i] > 0) result.removed.push_back({product.rules()[i].rule->id, by_rule[i]});
  for (std::size_t i = 0; i < by_constraint.size(); ++i)
    if (by_constraint[i] > 0) result.removed.push_back({product.constraints()[i].constraint->id, by_constraint[i]});
  result.unknown.assign(unknown.begin(), unknown.end());
  return result;
}

NegativeRows negative_rows(const MatrixFile& file, const Catalogue& catalogue, const Machine& machine) {
  NegativeRows result;
  const bool any = std::any_of(file.constraints.begin(), file.constraints.end(), [](const Constraint& constraint) { return constraint.negative; });
  if (!any) return result;
  check_size(file);
  Product product(file, catalogue, machine);
  std::map<std::string, std::set<std::vector<std::size_t>>> seen;  // constraint -> states of the axes it reads
  std::map<std::string, std::vector<std::string>> smallest;        // constraint -> what else its rows break

  product.for_each([&](const std::vector<std::size_t>& states) {
    std::vector<std::string> broken;
    for (RowRule& rule : product.rules())
      if (Product::breaks(rule, states) == Truth::yes) broken.push_back(rule.rule->id);
    for (RowConstraint& constraint : product.constraints())
      if (constraint.require.holds(states) == Truth::no) broken.push_back(constraint.constraint->id);
    for (const RowConstraint& row : product.constraints()) {
      const Constraint& constraint = *row.constraint;
      if (!constraint.negative || std::find(broken.begin(), broken.end(), constraint.id) == broken.end()) continue;
      if (broken.size() > 1) {
        std::vector<std::string>& others = smallest[constraint.id];
        if (others.empty() || broken.size() < others.size()) others = broken;
        continue;
      }
      std::vector<std::size_t> key;
      for (std::size_t i = 0; i < states.size(); ++i) {
        const bool reads = std::any_of(constraint.require.inputs().begin(), constraint.require.inputs().end(), [&](const Input& input) { return input.name == file.axes[i].name; });
        if (reads) key.push_back(states[i]);
      }
      if (seen[constraint.id].insert(key).second) result.rows.push_back({product.to_case(states), constraint.id});
    }
  });

  for (const Constraint& constraint : file.constraints) {
    if (!constraint.negative || seen.count(constraint.id) != 0) continue;
    const auto others = smallest.find(constraint.id);
    result.not_isolated.push_back(constraint.id + (others == smallest.end() ? ": no row breaks it" : ": breaks only together: " + listed(others->second)));
  }
  return result;
}

}  // namespace graphproof::matrix
