// From a formula over truth tables to clauses: what a reader of models makes of an expression,
// whatever its language.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "matrix/cover/model/model.h"

namespace graphproof::cover {

/// A formula in which only leaves look at parameters. A leaf's table has one entry for each choice
/// of values of its parameters, which are in increasing order; the last one's value turns fastest.
struct Condition {
  enum class Kind { leaf, all, any, not_ };
  Kind kind = Kind::all;
  std::vector<Condition> parts;  // of all, any, not_
  std::vector<int> parameters;   // of a leaf
  std::vector<char> table;

  static Condition leaf(std::vector<int> parameters, std::vector<char> table);
  static Condition all_of(std::vector<Condition> parts);
  static Condition any_of(std::vector<Condition> parts);
  static Condition no(Condition part);
};

/// Entries that a leaf's table may have: beyond it a reader refuses the expression.
constexpr double kMostTableEntries = 1 << 20;

/// Adds to `model` the constraint that the condition holds; where its clauses would be too many,
/// with hidden parameters for its parts. REQUIRES: all visible parameters are there.
void add_constraint(Model& model, std::string id, const Condition& condition);

}  // namespace graphproof::cover
