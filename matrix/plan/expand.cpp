#include "matrix/plan/expand.h"

#include <utility>

namespace graphproof::matrix {

Expansion::Expansion(const MatrixFile& file, const Catalogue& catalogue, const Machine& machine,
                     const std::optional<Expression>& where)
    : file_(file),
      catalogue_(catalogue),
      model_(matrix_model(file, catalogue, machine, where, Extent::legal)),
      product_(model_.model) {
  counts_.raw = product_.raw();
  counts_.valid = product_.valid();
  counts_.idle = model_.idle;
  counts_.unknown = model_.unknown;
  for (std::size_t i = 0; i < model_.model.constraints.size(); ++i) {
    const std::string& id = model_.model.constraints[i].id;
    const cover::RowCount& rows = product_.removed()[i];
    if (i < model_.switches) {
      counts_.raw = {counts_.raw.rows - rows.rows, counts_.raw.exact && rows.exact};
    } else if (id == "where" && where) {
      counts_.filtered = rows;
      counts_.valid = {counts_.valid.rows + rows.rows, counts_.valid.exact && rows.exact};
    } else if (rows.rows == 0 && rows.exact) {
      counts_.idle.push_back(id);
    } else {
      counts_.removed.push_back({id, rows});
    }
  }
  std::erase(counts_.idle, "where");
  for (const Constraint& constraint : file.constraints) {
    if (!constraint.skip_as) continue;
    skips_.push_back({&constraint, condition_truth(constraint.require, file.axes, machine)});
    if (skips_.back().holds.sometimes(Truth::unknown)) counts_.unknown.push_back(constraint.id);
  }
}

ExpandedRow Expansion::expanded(const cover::Row& row) const {
  const States states = states_of(row);
  ExpandedRow result{.test_case = case_of(states, file_.axes, catalogue_.axes)};
  for (const Skip& skip : skips_) {
    if (skip.holds.of(states) != Truth::no) continue;
    result.skip = {.verdict = *skip.constraint->skip_as,
                   .why = skip.constraint->id + ": " + skip.constraint->why};
    break;
  }
  return result;
}

void Expansion::for_each(const std::function<void(ExpandedRow&&)>& row) const {
  product_.for_each([&](const cover::Row& values) { row(expanded(values)); });
}

}  // namespace graphproof::matrix
