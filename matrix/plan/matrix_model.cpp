#include "matrix/plan/matrix_model.h"

#include <algorithm>
#include <memory>
#include <set>
#include <utility>

#include "matrix/case/case.h"
#include "matrix/cover/model/condition.h"
#include "matrix/plan/row_truth.h"

namespace graphproof::matrix {
namespace {

constexpr double kMostStates =
    1 << 22;  // of the axes that one rule reads; the rule is evaluated for each of them
constexpr double kMostStatesOfAll = 1 << 24;  // of all rules together, which take some ten seconds

/// The condition that `truth` is not `forbidden`, over the axes that it reads.
cover::Condition allowed(const RowTruth& truth, Truth forbidden,
                         const std::vector<VaryingAxis>& axes) {
  const std::vector<std::size_t>& reads = truth.reads();
  States states(axes.size(), 0);
  std::vector<char> table;
  const auto turn = [&](auto&& turn, std::size_t depth) -> void {
    if (depth == reads.size()) return table.push_back(truth.of(states) != forbidden);
    for (std::size_t& state = states[reads[depth]] = 0; state < state_count(axes[reads[depth]]);
         ++state)
      turn(turn, depth + 1);
  };
  turn(turn, 0);
  return cover::Condition::leaf({reads.begin(), reads.end()}, std::move(table));
}

double states_read(const RowTruth& truth, const std::vector<VaryingAxis>& axes) {
  double states = 1;
  for (const std::size_t axis : truth.reads())
    states *= static_cast<double>(state_count(axes[axis]));
  return states;
}

class ModelMaker {
 public:
  ModelMaker(const MatrixFile& file, const Catalogue& catalogue, const Machine& machine)
      : file_(file), catalogue_(catalogue), machine_(machine) {
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

  /// Adds rules and constraints. If `fixed`, only those that read no fact about the machine and are
  /// not negative.
  void rules(bool fixed) {
    for (const Rule& rule : catalogue_.rules.rules()) {
      if (rule.status != "live" || rule.severity != "error") continue;
      if (fixed && reads_machine(rule)) continue;
      add(rule.id, rule_truths(rule, file_.axes, machine_), Truth::yes);
    }
    for (const Constraint& constraint : file_.constraints) {
      if (constraint.skip_as ||
          (fixed && (constraint.negative || reads_machine(constraint.require))))
        continue;
      add(constraint.id, condition_truth(constraint.require, file_.axes, machine_), Truth::no);
    }
  }

  void where(const Expression& where) {
    const RowTruth holds = condition_truth(where, file_.axes, machine_);
    add("where",
        RowTruth(file_.axes, {holds.reads().begin(), holds.reads().end()},
                 [&holds](const States& states) {
                   return holds.of(states) == Truth::yes ? Truth::yes : Truth::no;
                 }),
        Truth::no);
  }

  void machine() {
    for (const Constraint& constraint : file_.constraints)
      if (constraint.skip_as)
        add(constraint.id, condition_truth(constraint.require, file_.axes, machine_), Truth::no);
    for (const Capability& capability : catalogue_.capabilities.capabilities())
      if (may_be_of(capability.subjects))
        add(capability.missing, capability_truth(capability, file_.axes, machine_), Truth::no);
    std::set<std::size_t> layout;
    for (std::size_t i = 0; i < file_.axes.size(); ++i)
      for (const char* axis : {"tp", "pp", "dp", "cp"})
        if (file_.axes[i].name == axis) layout.insert(i);
    add("slots",
        RowTruth(file_.axes, layout,
                 [this](const States& states) {
                   return world_size(catalogue_.axes,
                                     case_of(states, file_.axes, catalogue_.axes)) <= machine_.slots
                              ? Truth::yes
                              : Truth::no;
                 }),
        Truth::no);
  }

  MatrixModel take() { return std::move(made_); }

 private:
  static bool reads_machine(const Expression& expression) {
    return std::any_of(expression.inputs().begin(), expression.inputs().end(),
                       [](const Input& input) { return input.machine; });
  }
  static bool reads_machine(const Rule& rule) {
    return reads_machine(rule.when) ||
           std::any_of(rule.parts.begin(), rule.parts.end(), [](const RulePart& part) {
             return reads_machine(part.when) || reads_machine(part.require);
           });
  }

  void add(const std::string& id, RowTruth truth, Truth forbidden) {
    add(id, std::vector{std::move(truth)}, forbidden);
  }

  /// Adds one constraint made of several truths that read few axes each. A single table over all of
  /// their axes would be far larger.
  void add(const std::string& id, const std::vector<RowTruth>& truths, Truth forbidden) {
    std::vector<cover::Condition> parts;
    bool unknown = false;
    for (const RowTruth& truth : truths) {
      const double states = states_read(truth, file_.axes);
      states_ += states;
      if (states > kMostStates || states_ > kMostStatesOfAll)
        throw InputError(
            {.what = "`" + id + "` reads too many combinations",
             .got = std::to_string(static_cast<std::int64_t>(std::min(states, 9e18))) +
                    " of the axes that it names, " +
                    std::to_string(static_cast<std::int64_t>(std::min(states_, 9e18))) +
                    " with the constraints before",
             .want = "at most " + std::to_string(static_cast<std::int64_t>(kMostStates)) +
                     ", and " + std::to_string(static_cast<std::int64_t>(kMostStatesOfAll)) +
                     " together",
             .why = "the rule is evaluated for each of them before anything runs",
             .next = "list fewer values of the axes that it names",
             .place = {.source = file_.source}});
      parts.push_back(allowed(truth, forbidden, file_.axes));
      unknown = unknown || truth.sometimes(Truth::unknown);
    }
    cover::add_constraint(made_.model, id, cover::Condition::all_of(std::move(parts)));
    if (unknown) made_.unknown.push_back(id);
    if (!made_.model.constraints.back().clauses.empty()) return;
    made_.idle.push_back(id);
    made_.model.constraints.pop_back();
  }

  /// Whether axis `i` is on exactly where its condition holds.
  RowTruth switched(std::size_t i) const {
    const auto when =
        std::make_shared<RowTruth>(condition_truth(*file_.axes[i].when, file_.axes, machine_));
    std::set<std::size_t> reads(when->reads().begin(), when->reads().end());
    reads.insert(i);
    return RowTruth(
        file_.axes, reads, [when, i, absent = file_.axes[i].values.size()](const States& states) {
          return (when->of(states) == Truth::yes) == (states[i] < absent) ? Truth::yes : Truth::no;
        });
  }

  /// Whether some row may have one of `subjects`.
  bool may_be_of(const std::vector<std::string>& subjects) const {
    return std::any_of(file_.axes.begin(), file_.axes.end(),
                       [](const VaryingAxis& axis) { return axis.name == "subject"; }) ||
           contains(subjects, kReference);
  }

  static bool contains(const std::vector<std::string>& names, std::string_view name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  }

  const MatrixFile& file_;
  const Catalogue& catalogue_;
  const Machine& machine_;
  MatrixModel made_;
  double states_ = 0;
};

}  // namespace

MatrixModel matrix_model(const MatrixFile& file, const Catalogue& catalogue, const Machine& machine,
                         const std::optional<Expression>& where, Extent extent) {
  ModelMaker maker(file, catalogue, machine);
  maker.switches();
  maker.rules(extent == Extent::anywhere);
  if (where) maker.where(*where);
  if (extent == Extent::runnable) maker.machine();
  return maker.take();
}

cover::Constraint broken(const Constraint& constraint, const MatrixFile& file,
                         const Machine& machine) {
  const RowTruth holds = condition_truth(constraint.require, file.axes, machine);
  const RowTruth breaks(file.axes, {holds.reads().begin(), holds.reads().end()},
                        [&holds](const States& states) {
                          return holds.of(states) == Truth::no ? Truth::yes : Truth::no;
                        });
  cover::Model model;
  for (const VaryingAxis& axis : file.axes)
    model.parameters.push_back(
        {.name = axis.name, .values = std::vector<cover::Value>(state_count(axis))});
  cover::add_constraint(model, "not " + constraint.id, allowed(breaks, Truth::no, file.axes));
  return model.constraints.front();
}

std::vector<std::size_t> states_of(const cover::Row& row) { return {row.begin(), row.end()}; }

}  // namespace graphproof::matrix
