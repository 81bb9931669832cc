#include "matrix/cover/model/oracle.h"

#include <algorithm>
#include <cadical.hpp>

namespace graphproof::cover {

struct Oracle::Encoded {
  CaDiCaL::Solver solver;
  std::vector<int> first;  // for each parameter the variable of its value 0; value v is first + v
  std::vector<int> switches;  // for each constraint the variable that turns it on
  int variables = 0;

  void clause(std::span<const int> literals) {
    for (const int literal : literals) solver.add(literal);
    solver.add(0);
  }

  /// At most one of `literals` is true: a clause for each pair if they are few, otherwise a chain
  /// of variables "one of the earlier ones is true", whose size is linear.
  void at_most_one(const std::vector<int>& literals) {
    constexpr std::size_t kPairs = 6;  // for more literals the chain is smaller
    if (literals.size() <= kPairs) {
      for (std::size_t i = 0; i < literals.size(); ++i)
        for (std::size_t j = i + 1; j < literals.size(); ++j)
          clause(std::vector{-literals[i], -literals[j]});
      return;
    }
    int before = 0;
    for (std::size_t i = 0; i < literals.size(); ++i) {
      const int now = i + 1 < literals.size() ? ++variables : 0;
      if (before != 0) clause(std::vector{-before, -literals[i]});
      if (now != 0) {
        clause(std::vector{-literals[i], now});
        if (before != 0) clause(std::vector{-before, now});
      }
      before = now;
    }
  }

  Encoded(const Model& model, bool named) {
    solver.set("quiet", 1);
    for (const Parameter& parameter : model.parameters) {
      first.push_back(variables + 1);
      variables += static_cast<int>(parameter.values.size());
    }
    for (std::size_t parameter = 0; parameter < first.size(); ++parameter) {
      std::vector<int> literals;
      for (std::size_t value = 0; value < model.parameters[parameter].values.size(); ++value)
        literals.push_back(first[parameter] + static_cast<int>(value));
      clause(literals);
      at_most_one(literals);
    }
    std::vector<int> spoiled;  // for each parameter the variable "it has a negative value"
    for (std::size_t parameter = 0; parameter < first.size(); ++parameter) {
      const auto& values = model.parameters[parameter].values;
      if (std::none_of(values.begin(), values.end(),
                       [](const Value& value) { return value.negative; }))
        continue;
      spoiled.push_back(++variables);
      for (std::size_t value = 0; value < values.size(); ++value)
        if (values[value].negative)
          clause(std::vector{-(first[parameter] + static_cast<int>(value)), spoiled.back()});
    }
    at_most_one(spoiled);
    for (const Constraint& constraint : model.constraints) {
      if (named) switches.push_back(++variables);
      for (const Clause& each : constraint.clauses) {
        std::vector<int> literals;
        if (named) literals.push_back(-switches.back());
        for (const Literal& literal : each) {
          const int variable = first[static_cast<std::size_t>(literal.parameter)] + literal.value;
          literals.push_back(literal.equal ? variable : -variable);
        }
        clause(literals);
      }
    }
  }

  bool solve(std::span<const Cell> cells) {
    for (const Cell& cell : cells)
      solver.assume(first[static_cast<std::size_t>(cell.parameter)] + cell.value);
    return solver.solve() == 10;
  }
};

Oracle::Oracle(const Model& model)
    : model_(&model), hard_(std::make_unique<Encoded>(model, false)) {}
Oracle::~Oracle() = default;

bool Oracle::solve(std::span<const Cell> cells, std::span<const int> preferred) {
  ++calls_;
  for (std::size_t parameter = 0; parameter < preferred.size(); ++parameter) {
    // Setting the phase of the other values to false makes the solver arrive at the liked one.
    const int count = static_cast<int>(model_->parameters[parameter].values.size());
    constexpr int kFew = 16;  // setting the phases of thousands of values costs more than it helps
    if (preferred[parameter] < 0 || count > kFew) continue;
    for (int value = 0; value < count; ++value) {
      const int variable = hard_->first[parameter] + value;
      hard_->solver.phase(value == preferred[parameter] ? variable : -variable);
    }
  }
  if (!hard_->solve(cells)) return false;
  row_.assign(model_->parameters.size(), 0);
  for (std::size_t parameter = 0; parameter < row_.size(); ++parameter) {
    int value = 0;
    while (hard_->solver.val(hard_->first[parameter] + value) < 0) ++value;
    row_[parameter] = value;
  }
  return true;
}

void Oracle::exclude(const Row& row) {
  std::vector<int> other;
  for (std::size_t parameter = 0; parameter < row.size(); ++parameter)
    other.push_back(-(hard_->first[parameter] + row[parameter]));
  hard_->clause(other);
}

std::vector<int> Oracle::reason(std::span<const Cell> cells) {
  if (named_ == nullptr) named_ = std::make_unique<Encoded>(*model_, true);
  std::vector<int> active;
  for (std::size_t constraint = 0; constraint < named_->switches.size(); ++constraint)
    active.push_back(static_cast<int>(constraint));
  const auto refuted = [&](const std::vector<int>& chosen) {
    ++calls_;
    for (const int constraint : chosen)
      named_->solver.assume(named_->switches[static_cast<std::size_t>(constraint)]);
    return !named_->solve(cells);
  };
  const auto blamed = [&](const std::vector<int>& chosen) {
    std::vector<int> core;
    for (const int constraint : chosen)
      if (named_->solver.failed(named_->switches[static_cast<std::size_t>(constraint)]))
        core.push_back(constraint);
    return core;
  };
  if (!refuted(active)) return {};
  active = blamed(active);
  for (std::size_t at = 0; at < active.size();) {
    std::vector<int> fewer = active;
    fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(at));
    if (refuted(fewer)) {
      // The constraints before `at` were needed by a larger set, so a subset of it needs them too.
      active = blamed(fewer);
    } else {
      ++at;
    }
  }
  return active;
}

}  // namespace graphproof::cover
