#include "matrix/cover/model/condition.h"

#include <algorithm>
#include <cassert>
#include <map>
#include <set>

namespace graphproof::cover {
namespace {

/// A clause as the values of each parameter that make it true; never all values of a parameter.
using SetClause = std::map<int, std::vector<char>>;
using SetClauses = std::vector<SetClause>;

constexpr std::size_t kMostClauses =
    512;  // that a disjunction may have; if it would have more, its parts get hidden parameters

class Compiler {
 public:
  explicit Compiler(Model& model) : model_(model) {}

  SetClauses clauses_of(const Condition& condition, bool wanted) {
    switch (condition.kind) {
      case Condition::Kind::not_:
        return clauses_of(condition.parts[0], !wanted);
      case Condition::Kind::leaf: {
        std::vector<char> table = condition.table;
        if (!wanted)
          for (char& entry : table) entry = !entry;
        return of_table(condition.parameters, 0, table);
      }
      case Condition::Kind::all:
        return wanted ? conjunction(condition, true) : disjunction(condition, false);
      case Condition::Kind::any:
        return wanted ? disjunction(condition, true) : conjunction(condition, false);
    }
    return {};
  }

 private:
  std::size_t size(int parameter) const {
    return model_.parameters[static_cast<std::size_t>(parameter)].values.size();
  }

  SetClauses conjunction(const Condition& condition, bool wanted) {
    SetClauses sum;
    for (const Condition& part : condition.parts) {
      SetClauses clauses = clauses_of(part, wanted);
      std::move(clauses.begin(), clauses.end(), std::back_inserter(sum));
    }
    return sum;
  }

  SetClauses disjunction(const Condition& condition, bool wanted) {
    SetClauses product{{}};  // the empty clause: false
    for (const Condition& part : condition.parts) {
      SetClauses factor = clauses_of(part, wanted);
      if (factor.size() > 1 && product.size() * factor.size() > kMostClauses)
        factor = named(factor);
      if (factor.size() > 1 && product.size() * factor.size() > kMostClauses)
        product = named(product);
      std::set<SetClause> next;
      for (const SetClause& left : product)
        for (const SetClause& right : factor) {
          SetClause both = left;
          if (merge(both, right)) next.insert(std::move(both));
        }
      product.assign(next.begin(), next.end());
      if (product.empty()) return {};  // always true
    }
    return product;
  }

  /// Adds `from` to `into`. False if the result is always true.
  bool merge(SetClause& into, const SetClause& from) const {
    for (const auto& [parameter, values] : from) {
      std::vector<char>& there = into[parameter];
      there.resize(values.size(), 0);
      bool all = true;
      for (std::size_t value = 0; value < values.size(); ++value) {
        there[value] |= values[value];
        all = all && there[value];
      }
      if (all) return false;
    }
    return true;
  }

  /// Makes a hidden parameter that may be true only where all clauses are, and returns the clause
  /// that it is true.
  SetClauses named(const SetClauses& clauses) {
    Parameter hidden{.name = "(part " + std::to_string(model_.parameters.size()) + ")",
                     .hidden = true};
    hidden.values = {Value{.names = {"false"}}, Value{.names = {"true"}}};
    const int parameter = static_cast<int>(model_.parameters.size());
    model_.parameters.push_back(std::move(hidden));
    for (SetClause clause : clauses) {
      clause[parameter] = {1, 0};
      definitions_.push_back(std::move(clause));
    }
    return {{{parameter, {0, 1}}}};
  }

  /// The clauses of a table. Values of the first parameter with equal parts of the table share
  /// theirs.
  SetClauses of_table(const std::vector<int>& parameters, std::size_t at,
                      const std::vector<char>& table) const {
    if (at == parameters.size()) return table[0] ? SetClauses{} : SetClauses{{}};
    const std::size_t count = size(parameters[at]), stride = table.size() / count;
    std::map<std::vector<char>, std::vector<char>>
        groups;  // part of the table -> the values that have it
    for (std::size_t value = 0; value < count; ++value) {
      const auto begin = table.begin() + static_cast<std::ptrdiff_t>(value * stride);
      auto& values = groups[std::vector<char>(begin, begin + static_cast<std::ptrdiff_t>(stride))];
      values.resize(count, 0);
      values[value] = 1;
    }
    SetClauses sum;
    for (const auto& [row, values] : groups) {
      SetClauses clauses = of_table(parameters, at + 1, row);
      for (SetClause& clause : clauses) {
        if (groups.size() > 1) {
          std::vector<char> others = values;
          for (char& value : others) value = !value;
          clause[parameters[at]] = std::move(others);
        }
        sum.push_back(std::move(clause));
      }
    }
    return sum;
  }

  Model& model_;

 public:
  SetClauses definitions_;
};

Clause literals_of(const SetClause& clause) {
  Clause literals;
  for (const auto& [parameter, values] : clause) {
    const auto absent = std::count(values.begin(), values.end(), 0);
    for (std::size_t value = 0; value < values.size(); ++value) {
      if (absent == 1 && !values[value])
        literals.push_back({parameter, static_cast<int>(value), false});
      if (absent > 1 && values[value])
        literals.push_back({parameter, static_cast<int>(value), true});
    }
  }
  return literals;
}

}  // namespace

Condition Condition::leaf(std::vector<int> parameters, std::vector<char> table) {
  assert(std::is_sorted(parameters.begin(), parameters.end()));
  return {.kind = Kind::leaf, .parameters = std::move(parameters), .table = std::move(table)};
}
Condition Condition::all_of(std::vector<Condition> parts) {
  return {.kind = Kind::all, .parts = std::move(parts)};
}
Condition Condition::any_of(std::vector<Condition> parts) {
  return {.kind = Kind::any, .parts = std::move(parts)};
}
Condition Condition::no(Condition part) {
  Condition condition{.kind = Kind::not_};
  condition.parts.push_back(std::move(part));
  return condition;
}

void add_constraint(Model& model, std::string id, const Condition& condition) {
  Compiler compiler(model);
  const SetClauses clauses = compiler.clauses_of(condition, true);
  Constraint constraint{std::move(id), {}};
  for (const SetClause& clause : clauses) constraint.clauses.push_back(literals_of(clause));
  for (const SetClause& clause : compiler.definitions_)
    constraint.clauses.push_back(literals_of(clause));
  model.constraints.push_back(std::move(constraint));
}

}  // namespace graphproof::cover
