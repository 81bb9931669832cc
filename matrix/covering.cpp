#include "matrix/covering.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <set>
#include <utility>

#include "matrix/cover/cover.h"
#include "matrix/cover/oracle.h"
#include "matrix/row_truth.h"

namespace graphproof::matrix {
namespace {

constexpr double kMostStates = 1 << 22;  // of the axes that one rule reads: each combination is looked at once
constexpr std::size_t kMostExplained = 10'000;

/// Writes the part of the rows in which `truth` is `forbidden` as clauses, each for the largest part that it can cut out
/// by fixing the axes that the rule reads one after the other.
class Clauses {
 public:
  Clauses(const RowTruth& truth, Truth forbidden, const std::vector<VaryingAxis>& axes, cover::Constraint& constraint)
      : truth_(truth), forbidden_(forbidden), axes_(axes), constraint_(constraint), states_(axes.size(), 0) {}

  void write() {
    if (below(0) == Part::all) constraint_.clauses.push_back({});  // nothing is allowed
  }

 private:
  enum class Part { none, some, all };

  Part below(std::size_t depth) {
    if (depth == truth_.reads().size()) return truth_.of(states_) == forbidden_ ? Part::all : Part::none;
    const std::size_t axis = truth_.reads()[depth], count = state_count(axes_[axis]);
    std::vector<std::size_t> whole;
    bool some = false;
    for (std::size_t state = 0; state < count; ++state) {
      states_[axis] = state;
      const Part part = below(depth + 1);
      if (part == Part::all) whole.push_back(state);
      some = some || part == Part::some;
    }
    if (whole.size() == count) return Part::all;
    if (whole.empty()) return some ? Part::some : Part::none;
    for (const std::size_t state : whole) {
      states_[axis] = state;
      cover::Clause clause;
      for (std::size_t fixed = 0; fixed <= depth; ++fixed) {
        const std::size_t parameter = truth_.reads()[fixed];
        clause.push_back({.parameter = static_cast<int>(parameter), .value = static_cast<int>(states_[parameter]), .equal = false});
      }
      constraint_.clauses.push_back(std::move(clause));
    }
    return Part::some;
  }

  const RowTruth& truth_;
  const Truth forbidden_;
  const std::vector<VaryingAxis>& axes_;
  cover::Constraint& constraint_;
  States states_;
};

class ModelMaker {
 public:
  ModelMaker(const MatrixFile& file, const Catalogue& catalogue, const Machine& machine) : file_(file), catalogue_(catalogue), machine_(machine) {
    for (const VaryingAxis& axis : file.axes) {
      cover::Parameter parameter{.name = axis.name, .values = {}};
      for (const Value& value : axis.values) parameter.values.push_back({.names = {value_text(value)}});
      if (axis.when) parameter.values.push_back({.names = {"absent"}});
      model_.parameters.push_back(std::move(parameter));
    }
  }

  void add(const std::string& id, const RowTruth& truth, Truth forbidden) {
    if (truth.sometimes(Truth::unknown)) unknown_.push_back(id);
    double states = 1;
    for (const std::size_t axis : truth.reads()) states *= static_cast<double>(state_count(file_.axes[axis]));
    if (states > kMostStates)
      throw InputError({.what = "`" + id + "` reads too many combinations for a covering plan", .got = std::to_string(states), .want = "at most " + std::to_string(kMostStates),
                        .why = "each of them is looked at once", .next = "list fewer values of the axes that it reads", .place = {.source = file_.source}});
    cover::Constraint constraint{.id = id, .clauses = {}};
    Clauses(truth, forbidden, file_.axes, constraint).write();
    if (constraint.clauses.empty()) idle_.push_back(id);
    else model_.constraints.push_back(std::move(constraint));
  }

  void rules(const std::optional<Expression>& where) {
    for (std::size_t i = 0; i < file_.axes.size(); ++i)
      if (file_.axes[i].when) add("when " + file_.axes[i].name, switched(i), Truth::no);
    for (const Rule& rule : catalogue_.rules.rules())
      if (rule.status == "live" && rule.severity == "error") add(rule.id, rule_truth(rule, file_.axes, machine_), Truth::yes);
    for (const Constraint& constraint : file_.constraints)
      if (constraint.as.empty()) add(constraint.id, condition_truth(constraint.require, file_.axes, machine_), Truth::no);
    if (where) {
      const RowTruth holds = condition_truth(*where, file_.axes, machine_);
      add("where", RowTruth(file_.axes, {holds.reads().begin(), holds.reads().end()},
                            [&holds](const States& states) { return holds.of(states) == Truth::yes ? Truth::yes : Truth::no; }), Truth::no);
    }
  }

  void machine() {
    for (const Constraint& constraint : file_.constraints)
      if (!constraint.as.empty()) add(constraint.id, condition_truth(constraint.require, file_.axes, machine_), Truth::no);
    for (const Capability& capability : catalogue_.capabilities.capabilities())
      add(capability.missing, on_case(capability.require), Truth::no);
    std::set<std::size_t> layout;
    for (std::size_t i = 0; i < file_.axes.size(); ++i)
      for (const char* axis : {"tp", "pp", "dp", "cp"})
        if (file_.axes[i].name == axis) layout.insert(i);
    add("slots", RowTruth(file_.axes, layout, [this](const States& states) {
          return world_size(catalogue_.axes, case_of(states, file_.axes, catalogue_.axes)) <= machine_.slots ? Truth::yes : Truth::no;
        }), Truth::no);
  }

  cover::Model take() { return std::move(model_); }
  const std::vector<std::string>& idle() const { return idle_; }
  const std::vector<std::string>& unknown() const { return unknown_; }

 private:
  /// Whether axis `i` is on exactly where its condition holds.
  RowTruth switched(std::size_t i) const {
    const auto when = std::make_shared<RowTruth>(condition_truth(*file_.axes[i].when, file_.axes, machine_));
    std::set<std::size_t> reads(when->reads().begin(), when->reads().end());
    reads.insert(i);
    return RowTruth(file_.axes, reads, [when, i, absent = file_.axes[i].values.size()](const States& states) {
      return (when->of(states) == Truth::yes) == (states[i] < absent) ? Truth::yes : Truth::no;
    });
  }

  /// A condition on the case, in which a switched-off axis has its default. What is not known to hold does not.
  RowTruth on_case(const Expression& expression) const {
    std::set<std::size_t> reads;
    for (std::size_t i = 0; i < file_.axes.size(); ++i)
      for (const Input& input : expression.inputs())
        if (!input.machine && input.name == file_.axes[i].name) reads.insert(i);
    return RowTruth(file_.axes, reads, [this, &expression](const States& states) {
      return expression.holds(case_of(states, file_.axes, catalogue_.axes), machine_) == Truth::yes ? Truth::yes : Truth::no;
    });
  }

  const MatrixFile& file_;
  const Catalogue& catalogue_;
  const Machine& machine_;
  cover::Model model_;
  std::vector<std::string> idle_, unknown_;
};

States states_of(const cover::Row& row) { return States(row.begin(), row.end()); }

/// A must-have row: the axes that `included` names and that vary; the rest is open. Nothing if it names another axis, or
/// a value that the file does not list.
std::optional<cover::Row> required_row(const MatrixFile& file, const Included& included, const AxisTable& axes) {
  cover::Row row(file.axes.size(), cover::kAny);
  for (const std::string& name : included.named) {
    const auto axis = std::find_if(file.axes.begin(), file.axes.end(), [&](const VaryingAxis& one) { return one.name == name; });
    if (axis == file.axes.end()) return std::nullopt;
    const Value value = value_of(axes, included.test_case, name);
    const auto found = std::find(axis->values.begin(), axis->values.end(), value);
    if (found == axis->values.end()) return std::nullopt;
    row[static_cast<std::size_t>(axis - file.axes.begin())] = static_cast<int>(found - axis->values.begin());
  }
  return row;
}

std::vector<int> columns(const MatrixFile& file, const std::vector<std::string>& names) {
  std::vector<int> found;
  for (std::size_t i = 0; i < file.axes.size(); ++i)
    if (std::find(names.begin(), names.end(), file.axes[i].name) != names.end()) found.push_back(static_cast<int>(i));
  return found;
}

double cost_of(const Value& value, const Expression& cost) {
  double number = 0;
  if (const auto* integer = std::get_if<std::int64_t>(&value)) number = static_cast<double>(*integer);
  if (const auto* real = std::get_if<double>(&value)) number = *real;
  if (number > 0) return number;
  throw InputError({.what = "`cost` is no positive number for some row", .got = value_text(value), .want = "a number above 0",
                    .why = "the plan with the smallest total is looked for", .next = "correct `" + cost.text() + "`", .place = {}});
}

std::vector<std::string> ids(const cover::Model& model, const std::vector<int>& constraints) {
  std::vector<std::string> names;
  for (const int index : constraints) names.push_back(model.constraints[static_cast<std::size_t>(index)].id);
  return names;
}

}  // namespace

nlohmann::json to_json(const Covering& covering) {
  nlohmann::json counts = nlohmann::json::array(), missed = nlohmann::json::array();
  for (const CoverCount& one : covering.counts)
    counts.push_back({{"axes", one.axes}, {"strength", one.strength}, {"raw", one.raw}, {"covered", one.covered},
                      {"unreachable", one.unreachable}, {"lost", one.lost}});
  for (const NotCovered& one : covering.not_covered) {
    nlohmann::json values = nlohmann::json::object();
    for (const auto& [axis, value] : one.values) values[axis] = value;
    missed.push_back({{"values", values}, {"lost", one.lost}, {"reason", one.reason}});
  }
  return {{"counts", counts}, {"not_covered", missed}, {"not_covered_left_out", covering.not_covered_left_out},
          {"steps", covering.steps}, {"at_least", covering.at_least}, {"cost", covering.cost}, {"idle", covering.idle}};
}

cover::Model cover_model(const MatrixFile& file, const Catalogue& catalogue, const Machine& machine, const std::optional<Expression>& where, bool runnable) {
  ModelMaker maker(file, catalogue, machine);
  maker.rules(where);
  if (runnable) maker.machine();
  return maker.take();
}

Covering cover_rows(const MatrixFile& file, const Catalogue& catalogue, const Machine& machine, const std::optional<Expression>& where,
                    const CoverRequest& request, std::int64_t seed) {
  ModelMaker maker(file, catalogue, machine);
  maker.rules(where);
  Covering result;
  result.idle = maker.idle();
  result.unknown = maker.unknown();
  std::vector<cover::Group> groups;
  for (const CoverRequest::Group& group : request.groups) groups.push_back({.parameters = columns(file, group.axes), .strength = group.strength});
  ModelMaker allowed = maker;
  maker.machine();
  cover::Model runnable = maker.take(), legal = allowed.take();
  runnable.groups = legal.groups = groups;

  cover::Options options{.strength = request.strength, .seed = static_cast<std::uint64_t>(seed), .steps = request.steps};
  for (const Included& included : file.include)
    if (const auto row = required_row(file, included, catalogue.axes)) options.required.push_back(*row);
  Machine expected = machine;
  expected.stack.try_emplace("minutes", "1");  // until somebody knows better every case takes as long as another
  if (request.cost)
    options.cost = [&](const cover::Row& row) {
      return cost_of(request.cost->evaluate(case_of(states_of(row), file.axes, catalogue.axes), expected), *request.cost);
    };
  const cover::Result covered = cover::cover(runnable, options);
  // What the rules allow, whoever could run it: a first answer counts it.
  const cover::Result all = cover::cover(legal, {.strength = request.strength, .seed = options.seed, .steps = 0});

  for (const cover::PlannedRow& row : covered.rows)
    result.rows.push_back({.test_case = case_of(states_of(row.cells), file.axes, catalogue.axes), .skip_as = "", .skip_why = ""});
  for (std::size_t i = 0; i < covered.demands.size(); ++i) {
    const cover::Demand &can = covered.demands[i], &may = all.demands[i];
    CoverCount count{.strength = can.strength, .raw = can.raw, .covered = can.valid, .unreachable = may.raw - may.valid, .lost = may.valid - can.valid};
    if (i > 0)
      for (const int parameter : can.parameters) count.axes.push_back(file.axes[static_cast<std::size_t>(parameter)].name);
    result.counts.push_back(std::move(count));
  }
  cover::Oracle of_rules(legal), of_machine(runnable);
  for (const cover::Cells& cells : covered.excluded) {
    if (result.not_covered.size() == kMostExplained) break;
    NotCovered one;
    for (const cover::Cell& cell : cells) {
      const cover::Parameter& parameter = runnable.parameters[static_cast<std::size_t>(cell.parameter)];
      one.values.emplace_back(parameter.name, parameter.values[static_cast<std::size_t>(cell.value)].names.front());
    }
    one.lost = of_rules.solve(cells);
    one.reason = one.lost ? ids(runnable, of_machine.reason(cells)) : ids(legal, of_rules.reason(cells));
    result.not_covered.push_back(std::move(one));
  }
  result.not_covered_left_out = covered.excluded_left_out + static_cast<std::int64_t>(covered.excluded.size() - result.not_covered.size());
  result.steps = covered.steps;
  result.at_least = covered.at_least;
  result.cost = covered.cost;
  return result;
}

}  // namespace graphproof::matrix
