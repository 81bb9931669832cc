#include "matrix/matrix_model.h"

#include <algorithm>
#include <memory>
#include <set>
#include <utility>

#include "matrix/case.h"
#include "matrix/row_truth.h"

namespace graphproof::matrix {
namespace {

constexpr double kMostStates = 1 << 22;       // of the axes that one rule reads: each combination is looked at once
constexpr double kMostStatesOfAll = 1 << 24;  // of all rules together: some ten seconds

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
    // One clause cuts out all of them: it names them, or the values that are left where these are fewer.
    cover::Clause clause;
    for (std::size_t fixed = 0; fixed < depth; ++fixed) {
      const std::size_t parameter = truth_.reads()[fixed];
      clause.push_back({.parameter = static_cast<int>(parameter), .value = static_cast<int>(states_[parameter]), .equal = false});
    }
    if (whole.size() == 1) {
      clause.push_back({.parameter = static_cast<int>(axis), .value = static_cast<int>(whole.front()), .equal = false});
    } else {
      for (std::size_t state = 0, next = 0; state < count; ++state) {
        if (next < whole.size() && whole[next] == state) ++next;
        else clause.push_back({.parameter = static_cast<int>(axis), .value = static_cast<int>(state), .equal = true});
      }
    }
    constraint_.clauses.push_back(std::move(clause));
    return Part::some;
  }

  const RowTruth& truth_;
  const Truth forbidden_;
  const std::vector<VaryingAxis>& axes_;
  cover::Constraint& constraint_;
  States states_;
};

double states_read(const RowTruth& truth, const std::vector<VaryingAxis>& axes) {
  double states = 1;
  for (const std::size_t axis : truth.reads()) states *= static_cast<double>(state_count(axes[axis]));
  return states;
}

class ModelMaker {
 public:
  ModelMaker(const MatrixFile& file, const Catalogue& catalogue, const Machine& machine) : file_(file), catalogue_(catalogue), machine_(machine) {
    for (const VaryingAxis& axis : file.axes) {
      cover::Parameter parameter{.name = axis.name, .values = {}};
      for (std::size_t i = 0; i < axis.values.size(); ++i) {
        cover::Value value{.names = {value_text(axis.values[i])}};
        if (!axis.weights.empty()) value.weight = axis.weights[i];
        parameter.values.push_back(std::move(value));
      }
      if (axis.when) parameter.values.push_back({.names = {"absent"}});
      made_.model.parameters.push_back(std::move(parameter));
    }
  }

  void switches() {
    for (std::size_t i = 0; i < file_.axes.size(); ++i)
      if (file_.axes[i].when) add("when " + file_.axes[i].name, switched(i), Truth::no);
    made_.switches = made_.model.constraints.size();
    made_.idle.clear();
  }

  /// `fixed`: only what reads no fact of the machine, and is not there to be broken.
  void rules(bool fixed) {
    for (const Rule& rule : catalogue_.rules.rules()) {
      if (rule.status != "live" || rule.severity != "error") continue;
      if (fixed && reads_machine(rule)) continue;
      add(rule.id, rule_truth(rule, file_.axes, machine_), Truth::yes);
    }
    for (const Constraint& constraint : file_.constraints) {
      if (!constraint.as.empty() || (fixed && (constraint.negative || reads_machine(constraint.require)))) continue;
      add(constraint.id, condition_truth(constraint.require, file_.axes, machine_), Truth::no);
    }
  }

  void where(const Expression& where) {
    const RowTruth holds = condition_truth(where, file_.axes, machine_);
    add("where", RowTruth(file_.axes, {holds.reads().begin(), holds.reads().end()},
                          [&holds](const States& states) { return holds.of(states) == Truth::yes ? Truth::yes : Truth::no; }), Truth::no);
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

  MatrixModel take() { return std::move(made_); }

 private:
  static bool reads_machine(const Expression& expression) {
    return std::any_of(expression.inputs().begin(), expression.inputs().end(), [](const Input& input) { return input.machine; });
  }
  static bool reads_machine(const Rule& rule) {
    return reads_machine(rule.when) || std::any_of(rule.parts.begin(), rule.parts.end(), [](const RulePart& part) {
             return reads_machine(part.when) || reads_machine(part.require);
           });
  }

  void add(const std::string& id, const RowTruth& truth, Truth forbidden) {
    const double states = states_read(truth, file_.axes);
    states_ += states;
    if (states > kMostStates || states_ > kMostStatesOfAll)
      throw InputError({.what = "`" + id + "` reads too many combinations", .got = std::to_string(static_cast<std::int64_t>(std::min(states, 9e18))) + " of the axes that it names, " + std::to_string(static_cast<std::int64_t>(std::min(states_, 9e18))) + " with the constraints before",
                        .want = "at most " + std::to_string(static_cast<std::int64_t>(kMostStates)) + ", and " + std::to_string(static_cast<std::int64_t>(kMostStatesOfAll)) + " together",
                        .why = "each of them is looked at once before anything runs", .next = "list fewer values of the axes that it names", .place = {.source = file_.source}});
    cover::Constraint constraint{.id = id, .clauses = {}};
    Clauses(truth, forbidden, file_.axes, constraint).write();
    if (truth.sometimes(Truth::unknown)) made_.unknown.push_back(id);
    if (constraint.clauses.empty()) made_.idle.push_back(id);
    else made_.model.constraints.push_back(std::move(constraint));
  }

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
  MatrixModel made_;
  double states_ = 0;
};

}  // namespace

MatrixModel matrix_model(const MatrixFile& file, const Catalogue& catalogue, const Machine& machine, const std::optional<Expression>& where, Extent extent) {
  ModelMaker maker(file, catalogue, machine);
  maker.switches();
  maker.rules(extent == Extent::anywhere);
  if (where) maker.where(*where);
  if (extent == Extent::runnable) maker.machine();
  return maker.take();
}

cover::Constraint broken(const Constraint& constraint, const MatrixFile& file, const Machine& machine) {
  const RowTruth holds = condition_truth(constraint.require, file.axes, machine);
  const RowTruth breaks(file.axes, {holds.reads().begin(), holds.reads().end()}, [&holds](const States& states) { return holds.of(states) == Truth::no ? Truth::yes : Truth::no; });
  cover::Constraint result{.id = "not " + constraint.id, .clauses = {}};
  Clauses(breaks, Truth::no, file.axes, result).write();
  return result;
}

std::vector<std::size_t> states_of(const cover::Row& row) { return {row.begin(), row.end()}; }

}  // namespace graphproof::matrix
