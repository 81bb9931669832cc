#include "matrix/shrink/space.h"

#include <algorithm>
#include <set>

#include "matrix/plan/covering.h"
#include "matrix/plan/row_truth.h"

namespace graphproof::shrink {
namespace {

bool satisfies(const cover::Row& row, const cover::Clause& clause) {
  return std::any_of(clause.begin(), clause.end(), [&](const cover::Literal& literal) {
    return (row[static_cast<std::size_t>(literal.parameter)] == literal.value) == literal.equal;
  });
}

}  // namespace

Space::Space(const matrix::Case& failing, std::span<const matrix::Case> others,
             const matrix::MatrixFile* file, const matrix::Catalogue& catalogue,
             const matrix::Machine& machine)
    : catalogue_(&catalogue), machine_(machine), failing_case_(failing) {
  const matrix::AxisTable& axes = catalogue.axes;
  if (const auto fault = failing.values.find("fault"); fault != failing.values.end())
    fixed_.values.insert(*fault);
  if (file != nullptr) {
    file_.axes = file->axes;
    file_.constraints = file->constraints;
  }
  std::set<std::string> names;
  for (const auto& [name, value] : failing.values) names.insert(name);
  for (const matrix::Case& other : others)
    for (const auto& [name, value] : other.values) names.insert(name);
  names.erase("fault");
  for (const std::string& name : names)
    if (std::none_of(file_.axes.begin(), file_.axes.end(),
                     [&](const matrix::VaryingAxis& axis) { return axis.name == name; }))
      file_.axes.push_back({.name = name, .values = {}, .when = std::nullopt});
  std::sort(file_.axes.begin(), file_.axes.end(), [&](const auto& left, const auto& right) {
    return axes.before(left.name, right.name);
  });
  for (matrix::VaryingAxis& axis : file_.axes) {
    const auto add = [&](const matrix::Case& test_case) {
      // An axis that is off has no value, so its default must not become one.
      if (axis.when && axis.when->holds(test_case, machine) != matrix::Truth::yes) return;
      const matrix::Value value = matrix::value_of(axes, test_case, axis.name);
      if (std::find(axis.values.begin(), axis.values.end(), value) == axis.values.end())
        axis.values.push_back(value);
    };
    add(failing);
    for (const matrix::Case& other : others) add(other);
    if (!axis.when) add({});
  }
  model_ = matrix::cover_model(file_, catalogue, machine, std::nullopt, true);
  failing_ = row_of(failing);
  std::erase_if(model_.constraints, [&](const cover::Constraint& constraint) {
    return !std::all_of(constraint.clauses.begin(), constraint.clauses.end(),
                        [&](const cover::Clause& clause) { return satisfies(failing_, clause); });
  });
}

cover::Row Space::row_of(const matrix::Case& test_case) const {
  cover::Row row;
  for (const matrix::VaryingAxis& axis : file_.axes) {
    if (axis.when && axis.when->holds(test_case, machine_) != matrix::Truth::yes) {
      row.push_back(static_cast<int>(axis.values.size()));
      continue;
    }
    const auto found = std::find(axis.values.begin(), axis.values.end(),
                                 matrix::value_of(catalogue_->axes, test_case, axis.name));
    row.push_back(found == axis.values.end() ? cover::kAny
                                             : static_cast<int>(found - axis.values.begin()));
  }
  return row;
}

matrix::Case Space::case_of(const cover::Row& row) const {
  matrix::Case made =
      matrix::case_of(matrix::States(row.begin(), row.end()), file_.axes, catalogue_->axes);
  for (const auto& [name, value] : fixed_.values) made.values.insert_or_assign(name, value);
  return made;
}

matrix::Value Space::failing_value(int parameter) const {
  return matrix::value_of(catalogue_->axes, failing_case_,
                          file_.axes[static_cast<std::size_t>(parameter)].name);
}

std::string Space::expression(std::span<const int> parameters) const {
  std::string text;
  for (const int parameter : parameters) {
    const std::string& name = file_.axes[static_cast<std::size_t>(parameter)].name;
    text += (text.empty() ? "" : " and ") + name +
            " == " + matrix::value_json(failing_value(parameter)).dump();
  }
  if (text.empty()) return "true";
  return matrix::Expression::condition(text, {.axes = &catalogue_->axes, .defines = {}},
                                       matrix::Origin::option("combination", text))
      .text();
}

std::string Space::name(std::span<const int> parameters) const {
  matrix::Case alone = fixed_;
  for (const int parameter : parameters)
    matrix::set_value(catalogue_->axes, alone, file_.axes[static_cast<std::size_t>(parameter)].name,
                      failing_value(parameter));
  return matrix::case_name(catalogue_->axes, alone);
}

}  // namespace graphproof::shrink
