#include "matrix/cover/verify.h"

#include <algorithm>
#include <array>
#include <map>
#include <numeric>

#include "matrix/cover/model/oracle.h"
#include "matrix/input/input_error.h"

namespace graphproof::cover {
namespace {

constexpr double kMostCombinations = 1e9;  // of one choice of columns; each takes one bit

/// Answers whether a valid row has some cells. It remembers the answers for values and pairs, which
/// decide most larger combinations.
class Reach {
 public:
  explicit Reach(Model model) : model_(std::move(model)), oracle_(model_) {
    none_ = !oracle_.solve({});
  }

  bool has_row(const Cells& cells) {
    if (none_) return false;
    if (cells.size() > 2)
      for (std::size_t left = 0; left < cells.size(); ++left)
        for (std::size_t right = left + 1; right < cells.size(); ++right)
          if (!pair(cells[left], cells[right])) return false;
    return cells.size() == 2 ? pair(cells[0], cells[1]) : oracle_.solve(cells);
  }

 private:
  bool pair(Cell left, Cell right) {
    const auto [entry, fresh] =
        pairs_.try_emplace({left.parameter, left.value, right.parameter, right.value}, false);
    if (fresh) entry->second = oracle_.solve(Cells{left, right});
    return entry->second;
  }

  Model model_;
  Oracle oracle_;
  bool none_ = false;
  std::map<std::array<int, 4>, bool> pairs_;
};

int negative_count(const Model& model, const Row& row) {
  int count = 0;
  for (std::size_t parameter = 0; parameter < row.size(); ++parameter)
    count += model.parameters[parameter].values[static_cast<std::size_t>(row[parameter])].negative
                 ? 1
                 : 0;
  return count;
}

/// The same model in which no negative value may be used.
Model without_negatives(const Model& model) {
  Model other = model;
  Constraint constraint{"(no negative value)", {}};
  for (std::size_t parameter = 0; parameter < model.parameters.size(); ++parameter)
    for (std::size_t value = 0; value < model.parameters[parameter].values.size(); ++value)
      if (model.parameters[parameter].values[value].negative)
        constraint.clauses.push_back(
            {{static_cast<int>(parameter), static_cast<int>(value), false}});
  other.constraints.push_back(std::move(constraint));
  return other;
}

/// The ids of the constraints that a full row breaks. The oracle chooses the hidden parameters.
std::vector<std::string> broken(const Model& model, const Row& row, Oracle& oracle) {
  std::vector<std::string> ids;
  if (static_cast<int>(model.parameters.size()) == model.visible_count()) {
    for (const Constraint& constraint : model.constraints)
      for (const Clause& clause : constraint.clauses) {
        const bool holds = std::any_of(clause.begin(), clause.end(), [&](const Literal& literal) {
          return (row[static_cast<std::size_t>(literal.parameter)] == literal.value) ==
                 literal.equal;
        });
        if (holds) continue;
        ids.push_back(constraint.id);
        break;
      }
    return ids;
  }
  Cells cells;
  for (std::size_t parameter = 0; parameter < row.size(); ++parameter)
    cells.push_back({static_cast<int>(parameter), row[parameter]});
  if (negative_count(model, row) <= 1 && !oracle.solve(cells))
    for (const int constraint : oracle.reason(cells))
      ids.push_back(model.constraints[static_cast<std::size_t>(constraint)].id);
  return ids;
}

class Judge {
 public:
  Judge(const Model& model, const std::vector<Row>& rows)
      : model_(model), any_(model), ordinary_(without_negatives(model)) {
    Oracle oracle(model);
    for (std::size_t index = 0; index < rows.size(); ++index) {
      InvalidRow invalid{index, broken(model, rows[index], oracle)};
      const int negatives = negative_count(model, rows[index]);
      if (invalid.broken.empty() && negatives <= 1) {
        (negatives == 0 ? clean_ : spoiled_).push_back(&rows[index]);
        continue;
      }
      ++result_.invalid_count;
      if (result_.invalid.size() < kMostShown) result_.invalid.push_back(std::move(invalid));
    }
  }

  void demand(const std::vector<int>& parameters, int strength) {
    std::vector<int> chosen;
    choose(parameters, 0, strength, chosen);
  }
  Verification result() { return std::move(result_); }

 private:
  void choose(const std::vector<int>& parameters, std::size_t from, int left,
              std::vector<int>& chosen) {
    if (left == 0) return judge(chosen);
    for (std::size_t at = from; at + static_cast<std::size_t>(left) <= parameters.size(); ++at) {
      chosen.push_back(parameters[at]);
      choose(parameters, at + 1, left - 1, chosen);
      chosen.pop_back();
    }
  }

  void judge(const std::vector<int>& columns) {
    double product = 1;
    for (const int column : columns) product *= static_cast<double>(values(column).size());
    result_.raw += product;
    if (product > kMostCombinations)
      throw matrix::InputError({"a choice of parameters has too many combinations",
                                std::to_string(product),
                                std::to_string(kMostCombinations) + " or fewer",
                                "each takes a bit of memory", "lower the strength"});
    std::vector<bool> in_clean(static_cast<std::size_t>(product), false),
        in_spoiled = spoiled_.empty() ? std::vector<bool>{} : in_clean;
    const auto number_of = [&](const Row& row) {
      std::size_t number = 0;
      for (const int column : columns)
        number = number * values(column).size() +
                 static_cast<std::size_t>(row[static_cast<std::size_t>(column)]);
      return number;
    };
    for (const Row* row : clean_) in_clean[number_of(*row)] = true;
    for (const Row* row : spoiled_) in_spoiled[number_of(*row)] = true;
    for (std::size_t number = 0; number < in_clean.size(); ++number) {
      if (in_clean[number]) {
        ++result_.reachable;
        continue;
      }
      Cells cells(columns.size());
      std::size_t rest = number;
      int negatives = 0;
      for (std::size_t at = columns.size(); at-- > 0; rest /= values(columns[at]).size()) {
        cells[at] = {columns[at], static_cast<int>(rest % values(columns[at]).size())};
        negatives +=
            values(columns[at])[static_cast<std::size_t>(cells[at].value)].negative ? 1 : 0;
      }
      // Ordinary values have to meet in a row without a negative value, which could hide their
      // fault.
      if (negatives == 1 && !spoiled_.empty() && in_spoiled[number]) {
        ++result_.reachable;
        continue;
      }
      if (negatives > 1 || !(negatives == 0 ? ordinary_ : any_).has_row(cells)) continue;
      ++result_.reachable;
      ++result_.missing_count;
      if (result_.missing.size() < kMostShown) result_.missing.push_back(std::move(cells));
    }
  }

  const std::vector<Value>& values(int column) const {
    return model_.parameters[static_cast<std::size_t>(column)].values;
  }

  const Model& model_;
  Reach any_, ordinary_;
  std::vector<const Row*> clean_, spoiled_;  // valid rows without and with a negative value
  Verification result_;
};

}  // namespace

Verification verify(const Model& model, const std::vector<Row>& rows, int strength) {
  check_model(model);
  if (strength < 1 || strength > kMaxStrength)
    throw matrix::InputError({"the strength is out of range", std::to_string(strength),
                              "1 to " + std::to_string(kMaxStrength), "",
                              "use the strength that the rows were made for"});
  std::vector<int> all(static_cast<std::size_t>(model.visible_count()));
  std::iota(all.begin(), all.end(), 0);
  Judge judge(model, rows);
  judge.demand(all, std::min(strength, static_cast<int>(all.size())));
  for (const Group& group : model.groups) judge.demand(group.parameters, group.strength);
  return judge.result();
}

}  // namespace graphproof::cover
