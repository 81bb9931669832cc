#include "matrix/cover/problem.h"

#include <algorithm>
#include <map>

namespace graphproof::cover {
Problem::Problem(const Model& model) : visible_(model.visible_count()) {
  first_.push_back(0);
  for (const Parameter& parameter : model.parameters) {
    for (const Value& value : parameter.values) {
      column_of_.push_back(static_cast<int>(first_.size()) - 1);
      weight_.push_back(std::max(1, value.weight));
    }
    first_.push_back(static_cast<int>(column_of_.size()));
  }
  words_ = (symbols() + 63) / 64;
  forbidden_.assign(static_cast<std::size_t>(symbols()) * stride(), 0);
  allowed_.assign(stride(), 0);
  constrained_.assign(static_cast<std::size_t>(symbols()), 0);
  for (int symbol = 0; symbol < symbols(); ++symbol) put(allowed_.data(), symbol);
  for (const Constraint& constraint : model.constraints)
    for (const Clause& clause : constraint.clauses) add_clause(clause);
  std::vector<int> negative;
  for (int column = 0; column < columns(); ++column)
    for (int value = 0; value < size(column); ++value)
      if (model.parameters[static_cast<std::size_t>(column)]
              .values[static_cast<std::size_t>(value)]
              .negative)
        negative.push_back(first(column) + value);
  for (const int left : negative)
    for (const int right : negative)
      if (column_of(left) < column_of(right)) forbid(left, right);

  std::vector<std::vector<int>> lists(static_cast<std::size_t>(symbols()));
  for (std::size_t cube = 0; cube < cubes_.size(); ++cube)
    for (int symbol = 0; symbol < symbols(); ++symbol)
      if (has(cubes_[cube].mask.data(), symbol))
        lists[static_cast<std::size_t>(symbol)].push_back(static_cast<int>(cube));
  cube_begin_.push_back(0);
  for (std::size_t symbol = 0; symbol < lists.size(); ++symbol) {
    if (!lists[symbol].empty()) constrained_[symbol] = 1;
    cube_list_.insert(cube_list_.end(), lists[symbol].begin(), lists[symbol].end());
    cube_begin_.push_back(cube_list_.size());
  }
}

void Problem::add_clause(const Clause& clause) {
  // For each column, the values with which all of the clause's literals about it are false.
  std::map<int, std::vector<char>> falsifying;
  for (const Literal& literal : clause) {
    const auto [entry, fresh] = falsifying.try_emplace(literal.parameter);
    if (fresh) entry->second.assign(static_cast<std::size_t>(size(literal.parameter)), 1);
    if (literal.equal) {
      entry->second[static_cast<std::size_t>(literal.value)] = 0;
    } else {
      for (int value = 0; value < size(literal.parameter); ++value)
        if (value != literal.value) entry->second[static_cast<std::size_t>(value)] = 0;
    }
  }
  std::vector<std::vector<int>> sets;
  for (const auto& [column, values] : falsifying) {
    std::vector<int> symbols;
    for (int value = 0; value < size(column); ++value)
      if (values[static_cast<std::size_t>(value)]) symbols.push_back(first(column) + value);
    if (symbols.empty()) return;  // always true
    sets.push_back(std::move(symbols));
  }
  if (sets.empty()) {
    contradictory_ = true;
  } else if (sets.size() == 1) {
    for (const int symbol : sets[0]) ban(symbol);
  } else if (sets.size() == 2) {
    for (const int left : sets[0])
      for (const int right : sets[1]) forbid(left, right);
  } else {
    Cube cube;
    cube.mask.assign(stride(), 0);
    for (const std::vector<int>& set : sets) {
      cube.columns.push_back(column_of(set[0]));
      for (const int symbol : set) put(cube.mask.data(), symbol);
    }
    cube.word_begin = sets.front().front() >> 6;
    cube.word_end = (sets.back().back() >> 6) + 1;
    cubes_.push_back(std::move(cube));
  }
}

void Problem::forbid(int left, int right) {
  put(forbidden_.data() + static_cast<std::size_t>(left) * stride(), right);
  put(forbidden_.data() + static_cast<std::size_t>(right) * stride(), left);
  constrained_[static_cast<std::size_t>(left)] = constrained_[static_cast<std::size_t>(right)] = 1;
}

void Problem::ban(int symbol) {
  drop(allowed_.data(), symbol);
  constrained_[static_cast<std::size_t>(symbol)] = 1;
}

bool Problem::allows(const Word* bits, int old, int symbol) const {
  if (!constrained_[static_cast<std::size_t>(symbol)]) return true;
  if (!has(allowed_.data(), symbol)) return false;
  const Word* row = forbidden(symbol);
  Word clash = 0;
  for (int word = 0; word < words_; ++word) clash |= row[word] & bits[word];
  if (clash != 0) return false;
  for (const int at : cubes_of(symbol)) {
    const Cube& cube = cubes_[static_cast<std::size_t>(at)];
    int met = has(cube.mask.data(), old) ? 0 : 1;
    for (int word = cube.word_begin; word < cube.word_end; ++word)
      met += std::popcount(cube.mask[static_cast<std::size_t>(word)] & bits[word]);
    if (met == static_cast<int>(cube.columns.size())) return false;
  }
  return true;
}

bool Problem::valid(const int* row, const Word* bits) const {
  if (contradictory_) return false;
  for (int column = 0; column < columns(); ++column)
    if (!allows(bits, row[column], row[column])) return false;
  return true;
}

}  // namespace graphproof::cover
