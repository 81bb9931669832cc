#include "matrix/expand.h"

#include <algorithm>
#include <map>
#include <set>

#include "matrix/row_truth.h"

namespace graphproof::matrix {
namespace {

constexpr std::int64_t kMostRows = 1'000'000'000;  // of one product; more would be walked for many minutes before anything runs

struct RowRule {
  const Rule* rule;
  RowTruth breaks;
};

struct RowConstraint {
  const Constraint* constraint;
  RowTruth holds;
};

// The odometer over the varying axes with every condition compiled for it.
class Product {
 public:
  Product(const MatrixFile& file, const Catalogue& catalogue, const Machine& machine) : file_(file), catalogue_(catalogue) {
    for (const VaryingAxis& axis : file.axes) {
      if (axis.when) whens_.emplace_back(condition_truth(*axis.when, file.axes, machine));
      else whens_.emplace_back(std::nullopt);
    }
    // What no row can break is dropped here and costs the walk nothing.
    for (const Rule& rule : catalogue.rules.rules()) {
      if (rule.status != "live" || rule.severity != "error") continue;
      RowTruth breaks = rule_truth(rule, file.axes, machine);
      if (!breaks.always(Truth::no)) rules_.push_back({&rule, std::move(breaks)});
    }
    for (const Constraint& constraint : file.constraints) {
      RowTruth holds = condition_truth(constraint.require, file.axes, machine);
      if (!holds.always(Truth::yes)) constraints_.push_back({&constraint, std::move(holds)});
    }
  }

  const std::vector<RowRule>& rules() const { return rules_; }
  const std::vector<RowConstraint>& constraints() const { return constraints_; }

  // Calls visit(states) for each distinct row, the last axis turning fastest.
  template <typename Visit>
  void for_each(Visit visit) {
    States states(file_.axes.size(), 0);
    std::size_t changed = 0;  // whens of axes before this one still hold for the row
    while (true) {
      for (std::size_t i = changed; i < states.size(); ++i)
        if (whens_[i] && whens_[i]->of(states) != Truth::yes) states[i] = file_.axes[i].values.size();
      visit(states);
      std::size_t axis = states.size();
      while (axis > 0 && states[axis - 1] + 1 >= file_.axes[axis - 1].values.size()) states[--axis] = 0;
      if (axis == 0) return;
      ++states[axis - 1];
      changed = axis;
    }
  }

  Case to_case(const States& states) const { return case_of(states, file_.axes, catalogue_.axes); }

 private:
  const MatrixFile& file_;
  const Catalogue& catalogue_;
  std::vector<std::optional<RowTruth>> whens_;
  std::vector<RowRule> rules_;
  std::vector<RowConstraint> constraints_;
};

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
  std::optional<RowTruth> filter;
  if (where) filter = condition_truth(*where, file.axes, machine);
  Expansion result;
  std::vector<std::int64_t> by_rule(product.rules().size()), by_constraint(product.constraints().size());
  std::set<std::string> unknown;

  product.for_each([&](const States& states) {
    ++result.raw;
    for (std::size_t i = 0; i < product.rules().size(); ++i) {
      const Truth breaks = product.rules()[i].breaks.of(states);
      if (breaks == Truth::unknown) unknown.insert(product.rules()[i].rule->id);
      if (breaks != Truth::yes) continue;
      ++by_rule[i];
      return;
    }
    const Constraint* skipped = nullptr;
    for (std::size_t i = 0; i < product.constraints().size(); ++i) {
      const RowConstraint& constraint = product.constraints()[i];
      const Truth holds = constraint.holds.of(states);
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
    if (filter && filter->of(states) != Truth::yes) {
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

  product.for_each([&](const States& states) {
    std::vector<std::string> broken;
    for (const RowRule& rule : product.rules())
      if (rule.breaks.of(states) == Truth::yes) broken.push_back(rule.rule->id);
    for (const RowConstraint& constraint : product.constraints())
      if (constraint.holds.of(states) == Truth::no) broken.push_back(constraint.constraint->id);
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
