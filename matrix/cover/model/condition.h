// Turns a formula over truth tables into clauses. Readers of models make such a formula of an
// expression, whatever its language.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "matrix/cover/model/model.h"

namespace graphproof::cover {

/// A formula whose leaves are truth tables. A leaf's table has one entry for each choice of values
/// of its parameters, which are in increasing order; the value of the last one changes fastest.
struct Condition {
  /// A table, or all of, any of, or the negation of the parts.
  enum class Kind { leaf, all, any, not_ };
  Kind kind = Kind::all;
  std::vector<Condition> parts;  // of all, any and not_
  std::vector<int> parameters;   // of a leaf
  std::vector<char> table;

  static Condition leaf(std::vector<int> parameters, std::vector<char> table);
  static Condition all_of(std::vector<Condition> parts);
  static Condition any_of(std::vector<Condition> parts);
  static Condition no(Condition part);
};

/// The most entries of a leaf's table. A reader refuses an expression that needs more.
constexpr double kMostTableEntries = 1 << 20;

/// Adds to `model` the constraint that the condition holds. If it would have too many clauses,
/// hidden parameters stand for its parts. REQUIRES: the model has all its visible parameters.
void add_constraint(Model& model, std::string id, const Condition& condition);

}  // namespace graphproof::cover
