#include "matrix/cover/model/product.h"

#include <algorithm>
#include <cstdio>
#include <numeric>
#include <set>

#include "matrix/cover/model/oracle.h"

namespace graphproof::cover {
namespace {

constexpr long double kExactly =
    9223372036854775808.0L;       // 2^63: a long double has every integer below it
constexpr int kOrderRounds = 30;  // passes of the ordering below, which settles in about ten

/// At most one negative value in a row, as a constraint.
Constraint negatives_apart(const Model& model) {
  Cells negatives;
  for (std::size_t parameter = 0; parameter < model.parameters.size(); ++parameter)
    for (std::size_t value = 0; value < model.parameters[parameter].values.size(); ++value)
      if (model.parameters[parameter].values[value].negative)
        negatives.push_back({static_cast<int>(parameter), static_cast<int>(value)});
  Constraint constraint{"(invalid values apart)", {}};
  for (const Cell& left : negatives)
    for (const Cell& right : negatives)
      if (left.parameter < right.parameter)
        constraint.clauses.push_back(
            {{left.parameter, left.value, false}, {right.parameter, right.value, false}});
  return constraint;
}

/// An order in which parameters of one constraint are near each other: the FORCE heuristic of
/// Aloul, Markov and Sakallah moves each parameter to the centre of its constraints, again and
/// again.
std::vector<int> near_order(const Model& model) {
  const auto count = static_cast<std::size_t>(model.visible_count());
  std::vector<std::vector<int>> supports;
  for (const Constraint& constraint : model.constraints) {
    std::set<int> support;
    for (const Clause& clause : constraint.clauses)
      for (const Literal& literal : clause)
        if (literal.parameter < static_cast<int>(count)) support.insert(literal.parameter);
    if (support.size() > 1) supports.emplace_back(support.begin(), support.end());
  }
  std::vector<int> order(count), best;
  std::iota(order.begin(), order.end(), 0);
  double least = 0;
  for (int round = 0; round < kOrderRounds; ++round) {
    std::vector<double> place(count), sum(count, 0), met(count, 0);
    for (std::size_t at = 0; at < count; ++at)
      place[static_cast<std::size_t>(order[at])] = static_cast<double>(at);
    double span = 0;
    for (const std::vector<int>& support : supports) {
      double centre = 0, low = static_cast<double>(count), high = 0;
      for (const int parameter : support) {
        const double at = place[static_cast<std::size_t>(parameter)];
        centre += at / static_cast<double>(support.size());
        low = std::min(low, at);
        high = std::max(high, at);
      }
      span += high - low;
      for (const int parameter : support) {
        sum[static_cast<std::size_t>(parameter)] += centre;
        met[static_cast<std::size_t>(parameter)] += 1;
      }
    }
    if (best.empty() || span < least) {
      best = order;
      least = span;
    }
    const auto goal = [&](int parameter) {
      const auto at = static_cast<std::size_t>(parameter);
      return met[at] > 0 ? sum[at] / met[at] : place[at];
    };
    std::stable_sort(order.begin(), order.end(),
                     [&](int left, int right) { return goal(left) < goal(right); });
  }
  return best;
}

}  // namespace

std::string RowCount::text() const {
  char digits[64];
  std::snprintf(digits, sizeof digits, rows < kExactly && exact ? "%.0Lf" : "%.4Lg", rows);
  return std::string(!exact ? "at most " : rows < kExactly ? "" : "about ") + digits;
}

nlohmann::json RowCount::json() const {
  if (rows < kExactly) return static_cast<std::int64_t>(rows);
  return static_cast<double>(rows);
}

/// The diagram of a model for one order of its parameters, and the constraints that did not fit
/// into it.
struct Product::Built {
  std::vector<int> order;  // level -> parameter
  Diagram diagram;
  Diagram::Node root = Diagram::kEverything;
  std::vector<RowCount> after;  // the rows after each constraint was added
  std::vector<const Constraint*> left_out;
  std::vector<std::vector<Clause>>
      checks;                      // clauses that were left out, by the level that decides them
  std::unique_ptr<Oracle> oracle;  // if a clause that was left out has hidden parameters

  Built(const Model& model, std::vector<int> levels, std::int64_t steps)
      : order(std::move(levels)),
        diagram(sizes_of(model, order), static_cast<int>(order.size())),
        checks(order.size()) {
    std::vector<int> level_of(model.parameters.size());
    std::iota(level_of.begin(), level_of.end(), 0);
    for (std::size_t level = 0; level < order.size(); ++level)
      level_of[static_cast<std::size_t>(order[level])] = static_cast<int>(level);
    const Constraint apart = negatives_apart(model);
    const auto add = [&](const Constraint& constraint) {
      std::vector<Clause> clauses = constraint.clauses;
      for (Clause& clause : clauses)
        for (Literal& literal : clause)
          literal.parameter = level_of[static_cast<std::size_t>(literal.parameter)];
      // A constraint may take half of the steps that are left, so that a single expensive one
      // leaves some for the others.
      std::int64_t allowed = steps / 2;
      const std::int64_t before = allowed;
      const std::optional<Diagram::Node> own = diagram.rows_of(clauses, allowed);
      const std::optional<Diagram::Node> both =
          own ? diagram.intersection(root, *own, allowed) : std::nullopt;
      steps -= before - std::max<std::int64_t>(allowed, 0);
      if (both)
        root = *both;
      else
        leave_out(constraint, clauses, model);
      after.push_back({diagram.count(root), left_out.empty()});
    };
    for (const Constraint& constraint : model.constraints) add(constraint);
    if (!apart.clauses.empty()) add(apart);
  }

  static std::vector<int> sizes_of(const Model& model, const std::vector<int>& order) {
    std::vector<int> sizes;
    for (const int parameter : order)
      sizes.push_back(
          static_cast<int>(model.parameters[static_cast<std::size_t>(parameter)].values.size()));
    for (std::size_t hidden = order.size(); hidden < model.parameters.size(); ++hidden)
      sizes.push_back(static_cast<int>(model.parameters[hidden].values.size()));
    return sizes;
  }

  void leave_out(const Constraint& constraint, const std::vector<Clause>& by_level,
                 const Model& model) {
    left_out.push_back(&constraint);
    for (const Clause& clause : by_level) {
      int last = 0;
      for (const Literal& literal : clause) last = std::max(last, literal.parameter);
      if (last < static_cast<int>(order.size()))
        checks[static_cast<std::size_t>(last)].push_back(clause);
      else if (oracle == nullptr)
        oracle = std::make_unique<Oracle>(model);
    }
  }

  /// Whether the clauses that were left out allow the values of the levels up to `level`.
  bool allowed(int level, const std::vector<int>& values) const {
    for (const Clause& clause : checks[static_cast<std::size_t>(level)])
      if (std::none_of(clause.begin(), clause.end(), [&](const Literal& literal) {
            return (values[static_cast<std::size_t>(literal.parameter)] == literal.value) ==
                   literal.equal;
          }))
        return false;
    if (level + 1 < diagram.levels() || oracle == nullptr) return true;
    Cells cells;
    for (std::size_t at = 0; at < order.size(); ++at) cells.push_back({order[at], values[at]});
    return oracle->solve(cells);
  }

  template <class Visit>
  void walk(int level, Diagram::Node node, Row& values, const Visit& visit) const {
    const bool decides = node != Diagram::kEverything && diagram.level(node) == level;
    const int count = diagram.size(level);
    const bool last = level + 1 == diagram.levels();
    const bool checked = !left_out.empty();
    const Diagram::Node* children = decides ? diagram.children(node).data() : nullptr;
    for (int value = 0; value < count; ++value) {
      const Diagram::Node child = decides ? children[value] : node;
      if (child == Diagram::kNothing) continue;
      values[static_cast<std::size_t>(level)] = value;
      if (checked && !allowed(level, values)) continue;
      if (last)
        visit(values);
      else
        walk(level + 1, child, values, visit);
    }
  }

  bool find(int level, Diagram::Node node, const Row& wanted, Row& values,
            std::vector<char>& dead) const {
    if (level == diagram.levels()) return true;
    const bool decides = node != Diagram::kEverything && diagram.level(node) == level;
    // With clauses left out, whether a node leads to a row depends on the levels above it too, and
    // is not remembered.
    if (decides && left_out.empty() && dead[node]) return false;
    for (int value = 0; value < diagram.size(level); ++value) {
      if (wanted[static_cast<std::size_t>(level)] != kAny &&
          wanted[static_cast<std::size_t>(level)] != value)
        continue;
      const Diagram::Node child =
          decides ? diagram.children(node)[static_cast<std::size_t>(value)] : node;
      if (child == Diagram::kNothing) continue;
      values[static_cast<std::size_t>(level)] = value;
      if (!left_out.empty() && !allowed(level, values)) continue;
      if (find(level + 1, child, wanted, values, dead)) return true;
    }
    if (decides) dead[node] = 1;
    return false;
  }

  Row row_of(const Row& values) const {
    Row row(values.size());
    for (std::size_t level = 0; level < values.size(); ++level)
      row[static_cast<std::size_t>(order[level])] = values[level];
    return row;
  }
};

Product::Product(const Model& model, std::int64_t steps) : model_(&model) {
  std::vector<int> order(static_cast<std::size_t>(model.visible_count()));
  std::iota(order.begin(), order.end(), 0);
  given_ = std::make_unique<Built>(model, order, steps);
  if (!given_->left_out.empty()) {
    chosen_ = std::make_unique<Built>(model, near_order(model), steps);
    if (chosen_->left_out.size() >= given_->left_out.size()) chosen_.reset();
  }
  RowCount before = raw();
  for (std::size_t constraint = 0; constraint < model.constraints.size(); ++constraint) {
    const RowCount& now = counted().after[constraint];
    removed_.push_back({before.rows - now.rows, now.exact});
    before = now;
  }
}

Product::~Product() = default;
Product::Product(Product&&) noexcept = default;

RowCount Product::raw() const { return {counted().diagram.count(Diagram::kEverything), true}; }

RowCount Product::valid() const { return counted().after.empty() ? raw() : counted().after.back(); }

std::vector<std::vector<char>> Product::held() const {
  const Built& built = counted();
  const Diagram& diagram = built.diagram;
  std::vector<std::vector<char>> held(built.order.size());
  for (int level = 0; level < diagram.levels(); ++level)
    held[static_cast<std::size_t>(built.order[static_cast<std::size_t>(level)])].assign(
        static_cast<std::size_t>(diagram.size(level)), 0);
  if (built.root == Diagram::kNothing) return held;
  const auto of_level = [&](int level) -> std::vector<char>& {
    return held[static_cast<std::size_t>(built.order[static_cast<std::size_t>(level)])];
  };
  std::vector<char> free(built.order.size(), 0);  // levels that some path skips
  const auto pass = [&](int from, int to) {
    for (int level = from; level < to; ++level) free[static_cast<std::size_t>(level)] = 1;
  };
  pass(0, diagram.level(built.root));
  std::vector<char> seen(diagram.node_count(), 0);
  seen[built.root] = 1;
  // A child has a smaller index than its parents.
  for (Diagram::Node node = built.root; node > Diagram::kEverything; --node) {
    if (!seen[node]) continue;
    const int level = diagram.level(node);
    const std::span<const Diagram::Node> children = diagram.children(node);
    for (std::size_t value = 0; value < children.size(); ++value) {
      if (children[value] == Diagram::kNothing) continue;
      of_level(level)[value] = 1;
      if (value == 0 || children[value] != children[value - 1])
        pass(level + 1, diagram.level(children[value]));
      seen[children[value]] = 1;
    }
  }
  for (std::size_t level = 0; level < free.size(); ++level)
    if (free[level])
      of_level(static_cast<int>(level))
          .assign(static_cast<std::size_t>(diagram.size(static_cast<int>(level))), 1);
  return held;
}

void Product::for_each(const std::function<void(const Row&)>& visit) const {
  Row values(given_->order.size(), 0);
  if (given_->root == Diagram::kNothing) return;
  if (values.empty())
    visit(values);
  else
    given_->walk(0, given_->root, values, visit);
}

std::optional<Row> Product::first(std::span<const Cell> cells) const {
  Row wanted(given_->order.size(), kAny), values(given_->order.size(), 0);
  for (const Cell& cell : cells) {
    int& there = wanted[static_cast<std::size_t>(cell.parameter)];
    if (there != kAny && there != cell.value) return std::nullopt;
    there = cell.value;
  }
  if (given_->root == Diagram::kNothing) return std::nullopt;
  std::vector<char> dead(given_->diagram.node_count(), 0);
  if (!given_->find(0, given_->root, wanted, values, dead)) return std::nullopt;
  return values;
}

}  // namespace graphproof::cover
