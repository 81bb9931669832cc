#include "matrix/plan/covering.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "matrix/cover/cover.h"
#include "matrix/cover/model/oracle.h"
#include "matrix/plan/matrix_model.h"
#include "matrix/plan/row_truth.h"

namespace graphproof::matrix {
namespace {

constexpr std::size_t kMostExplained = 10'000;

/// The row of an included case, in which axes that it does not name are open. Nothing if it names
/// an axis that does not vary, or a value that the file does not list.
std::optional<cover::Row> required_row(const MatrixFile& file, const Included& included,
                                       const AxisTable& axes) {
  cover::Row row(file.axes.size(), cover::kAny);
  for (const std::string& name : included.named) {
    const auto axis = std::find_if(file.axes.begin(), file.axes.end(),
                                   [&](const VaryingAxis& one) { return one.name == name; });
    if (axis == file.axes.end()) return std::nullopt;
    const Value value = value_of(axes, included.test_case, name);
    const auto found = std::find(axis->values.begin(), axis->values.end(), value);
    if (found == axis->values.end()) return std::nullopt;
    row[static_cast<std::size_t>(axis - file.axes.begin())] =
        static_cast<int>(found - axis->values.begin());
  }
  return row;
}

cover::Cells cells_of(const cover::Row& row) {
  cover::Cells cells;
  for (std::size_t parameter = 0; parameter < row.size(); ++parameter)
    if (row[parameter] != cover::kAny)
      cells.push_back({static_cast<int>(parameter), row[parameter]});
  return cells;
}

/// The row of a case of an earlier plan, in which values that the file does not list are open.
cover::Row previous_row(const MatrixFile& file, const Case& test_case, const AxisTable& axes,
                        const Machine& machine) {
  cover::Row row(file.axes.size(), cover::kAny);
  for (std::size_t i = 0; i < row.size(); ++i) {
    const VaryingAxis& axis = file.axes[i];
    const auto found =
        std::find(axis.values.begin(), axis.values.end(), value_of(axes, test_case, axis.name));
    if (axis.when && axis.when->holds(test_case, machine) != Truth::yes)
      row[i] = static_cast<int>(axis.values.size());
    else if (found != axis.values.end())
      row[i] = static_cast<int>(found - axis.values.begin());
  }
  return row;
}

std::vector<int> columns(const MatrixFile& file, const std::vector<std::string>& names) {
  std::vector<int> found;
  for (std::size_t i = 0; i < file.axes.size(); ++i)
    if (std::find(names.begin(), names.end(), file.axes[i].name) != names.end())
      found.push_back(static_cast<int>(i));
  return found;
}

double cost_of(const Value& value, const Expression& cost) {
  double number = 0;
  if (const auto* integer = std::get_if<std::int64_t>(&value))
    number = static_cast<double>(*integer);
  if (const auto* real = std::get_if<double>(&value)) number = *real;
  if (number > 0) return number;
  throw InputError({.what = "`cost` is not a positive number for some row",
                    .got = value_text(value),
                    .want = "a number above 0",
                    .why = "the search makes the total cost small",
                    .next = "correct `" + cost.text() + "`",
                    .place = {}});
}

}  // namespace

NotCovered not_covered(const cover::Model& model, cover::Oracle& oracle,
                       const cover::Cells& cells) {
  NotCovered result;
  for (const cover::Cell& cell : cells) {
    const cover::Parameter& parameter = model.parameters[static_cast<std::size_t>(cell.parameter)];
    result.values.emplace_back(
        parameter.name, parameter.values[static_cast<std::size_t>(cell.value)].names.front());
  }
  for (const int index : oracle.reason(cells))
    result.reason.push_back(model.constraints[static_cast<std::size_t>(index)].id);
  return result;
}

nlohmann::json to_json(const NotCovered& one) {
  nlohmann::json values = nlohmann::json::object();
  for (const auto& [axis, value] : one.values) values[axis] = value;
  return {{"values", values}, {"lost", one.lost}, {"reason", one.reason}};
}

nlohmann::json to_json(const Covering& covering) {
  nlohmann::json counts = nlohmann::json::array(), missed = nlohmann::json::array();
  for (const CoverCount& one : covering.counts)
    counts.push_back({{"axes", one.axes},
                      {"strength", one.strength},
                      {"raw", one.raw},
                      {"covered", one.covered},
                      {"unreachable", one.unreachable},
                      {"lost", one.lost}});
  for (const NotCovered& one : covering.not_covered) missed.push_back(to_json(one));
  return {{"counts", counts},
          {"not_covered", missed},
          {"not_covered_left_out", covering.not_covered_left_out},
          {"steps", covering.steps},
          {"dropped", covering.dropped},
          {"at_least", covering.at_least},
          {"cost", covering.cost},
          {"idle", covering.idle}};
}

cover::Model cover_model(const MatrixFile& file, const Catalogue& catalogue, const Machine& machine,
                         const std::optional<Expression>& where, bool runnable) {
  return matrix_model(file, catalogue, machine, where, runnable ? Extent::runnable : Extent::legal)
      .model;
}

Covering cover_rows(const MatrixFile& file, const Catalogue& catalogue, const Machine& machine,
                    const std::optional<Expression>& where, const CoverRequest& request,
                    std::int64_t seed, const std::vector<Case>& previous) {
  MatrixModel allowed = matrix_model(file, catalogue, machine, where, Extent::legal);
  cover::Model runnable = matrix_model(file, catalogue, machine, where, Extent::runnable).model,
               legal = std::move(allowed.model);
  Covering result;
  result.idle = std::move(allowed.idle);
  result.unknown = std::move(allowed.unknown);
  for (const CoverRequest::Group& group : request.groups)
    runnable.groups.push_back(
        {.parameters = columns(file, group.axes), .strength = group.strength});
  legal.groups = runnable.groups;

  cover::Oracle of_rules(legal), of_machine(runnable);
  cover::Options options{.strength = request.strength,
                         .seed = static_cast<std::uint64_t>(seed),
                         .steps = request.steps};
  for (const Included& included : file.include)
    if (const auto row = required_row(file, included, catalogue.axes);
        row && of_machine.solve(cells_of(*row)))
      options.required.push_back(*row);
  for (const Case& test_case : previous)
    options.previous.push_back(previous_row(file, test_case, catalogue.axes, machine));
  Machine expected = machine;
  expected.stack.try_emplace("minutes", "1");  // every case is taken to last equally long
  if (request.cost)
    options.cost = [&](const cover::Row& row) {
      return cost_of(
          request.cost->evaluate(case_of(states_of(row), file.axes, catalogue.axes), expected),
          *request.cost);
    };
  const cover::Result covered = cover::cover(runnable, options);
  // What the rules allow on any machine; a first answer suffices to count it.
  const cover::Result all =
      cover::cover(legal, {.strength = request.strength, .seed = options.seed, .steps = 0});

  for (const cover::PlannedRow& row : covered.rows) {
    ExpandedRow expanded{.test_case = case_of(states_of(row.cells), file.axes, catalogue.axes)};
    if (row.origin == cover::Origin::previous) expanded.changed_cells = row.changed_cells;
    result.rows.push_back(std::move(expanded));
  }
  result.dropped = static_cast<std::int64_t>(covered.dropped.size());
  for (std::size_t i = 0; i < covered.demands.size(); ++i) {
    const cover::Demand &can = covered.demands[i], &may = all.demands[i];
    CoverCount count{.strength = can.strength,
                     .raw = can.raw,
                     .covered = can.valid,
                     .unreachable = may.raw - may.valid,
                     .lost = may.valid - can.valid};
    if (i > 0)
      for (const int parameter : can.parameters)
        count.axes.push_back(file.axes[static_cast<std::size_t>(parameter)].name);
    result.counts.push_back(std::move(count));
  }
  for (const cover::Cells& cells : covered.excluded) {
    if (result.not_covered.size() == kMostExplained) break;
    const bool lost = of_rules.solve(cells);
    result.not_covered.push_back(lost ? not_covered(runnable, of_machine, cells)
                                      : not_covered(legal, of_rules, cells));
    result.not_covered.back().lost = lost;
  }
  result.not_covered_left_out =
      covered.excluded_left_out +
      static_cast<std::int64_t>(covered.excluded.size() - result.not_covered.size());
  result.steps = covered.steps;
  result.at_least = covered.at_least;
  result.cost = covered.cost;
  return result;
}

}  // namespace graphproof::matrix
