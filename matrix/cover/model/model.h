// A combinatorial model: parameters with named values, constraints, and groups with strengths of
// their own. All file formats are read into it, and everything in matrix/cover works on it.
#pragma once

#include <compare>
#include <string>
#include <vector>

namespace graphproof::cover {

/// A value of a parameter.
struct Value {
  std::vector<std::string> names;  // the name, then aliases: other spellings of the same value
  /// An invalid value, to test error handling. A row has at most one, so that none hides another.
  bool negative = false;
  /// How often the value is chosen, compared with others, where nothing has to be covered; 1 or
  /// more.
  int weight = 1;
};

/// A parameter of a model.
struct Parameter {
  std::string name;
  std::vector<Value> values;
  /// A hidden parameter stands for an inner condition of a constraint. It is in no row and in no
  /// combination. Hidden parameters come last.
  bool hidden = false;
};

/// parameter == value, or parameter != value if `equal` is false. Both are indices.
struct Literal {
  int parameter = 0;
  int value = 0;
  bool equal = true;
};

/// A clause is true if one of its literals is.
using Clause = std::vector<Literal>;

/// A constraint holds if all of its clauses are true.
struct Constraint {
  std::string id;
  std::vector<Clause> clauses;
};

/// Parameters of which all combinations of `strength` values are wanted, whatever the strength of
/// the rest of the model.
struct Group {
  std::vector<int> parameters;  // indices, each once
  int strength = 2;
};

/// A model. The names of parameters differ, and so do those of one parameter's values.
struct Model {
  std::vector<Parameter> parameters;
  std::vector<Constraint> constraints;
  std::vector<Group> groups;

  /// The number of parameters that are not hidden.
  int visible_count() const;
};

/// The index of the value of each visible parameter; kAny where a partial row leaves it open.
using Row = std::vector<int>;
constexpr int kAny = -1;

/// A parameter and its value, both as indices.
struct Cell {
  int parameter = 0, value = 0;
  auto operator<=>(const Cell&) const = default;
};
/// A combination of values.
using Cells = std::vector<Cell>;

constexpr int kMaxStrength = 6;

/// Throws InputError if an index is out of range, a parameter has no value, or a hidden parameter
/// precedes a visible one.
void check_model(const Model& model);

}  // namespace graphproof::cover
