// A combinatorial model: parameters with named values, constraints, groups with a strength of their
// own. What formats are read into and what everything else in this folder works on.
#pragma once

#include <compare>
#include <string>
#include <vector>

namespace graphproof::cover {

struct Value {
  std::vector<std::string>
      names;  // at least one; the others are aliases: the same value under another spelling
  bool negative = false;  // an invalid value: at most one in a row, so that it can't hide another
  int weight = 1;         // relative liking where nothing has to be covered; 1 or more
};

struct Parameter {
  std::string name;
  std::vector<Value> values;
  /// The truth of an inner condition: in no row, in no combination. Hidden parameters come last.
  bool hidden = false;
};

/// parameter == value, or with `equal` false parameter != value. Both are indices.
struct Literal {
  int parameter = 0;
  int value = 0;
  bool equal = true;
};

/// True where one of its literals is.
using Clause = std::vector<Literal>;

/// True where all of its clauses are.
struct Constraint {
  std::string id;
  std::vector<Clause> clauses;
};

/// All combinations of `strength` of these parameters are wanted, whatever the strength of the
/// rest.
struct Group {
  std::vector<int> parameters;  // indices, each once
  int strength = 2;
};

struct Model {
  std::vector<Parameter> parameters;
  std::vector<Constraint> constraints;
  std::vector<Group> groups;

  /// How many parameters a row shows.
  int visible_count() const;
};

/// A value index for each visible parameter; kAny where a partial row leaves it open.
using Row = std::vector<int>;
constexpr int kAny = -1;

/// One parameter's value, both as indices.
struct Cell {
  int parameter = 0, value = 0;
  auto operator<=>(const Cell&) const = default;
};
using Cells = std::vector<Cell>;

constexpr int kMaxStrength = 6;

/// Throws InputError if an index is out of range, a parameter has no value, or a hidden parameter
/// precedes a visible one.
void check_model(const Model& model);

}  // namespace graphproof::cover
