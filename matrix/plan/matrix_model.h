// Turns a matrix file, the shipped rules and a machine into a model for matrix/cover. It has a
// parameter for each varying axis, with the axis's values in order and then `absent` if the axis
// can be off. Products, samples and covering plans all use this model, so that they call the same
// rows valid.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "matrix/case/machine.h"
#include "matrix/catalogue/catalogue.h"
#include "matrix/cover/model/model.h"
#include "matrix/plan/matrix_file.h"

namespace graphproof::matrix {

/// Which constraints a model has. Their ids are "when AXIS", ids of rules and constraints, and
/// "where"; those about what a machine can't run are "slots" and the `missing` texts of the
/// capabilities.
enum class Extent {
  anywhere,  // the rules and constraints that do not depend on the machine, except negative ones
  legal,     // all rules and constraints, except those that only skip ("as")
  runnable,  // all rules and constraints, and what the machine can't run
};

/// A model, and notes on the constraints that it was made from.
struct MatrixModel {
  cover::Model model;             // without constraints that forbid nothing
  std::size_t switches = 0;       // how many constraints at the front only switch axes off
  std::vector<std::string> idle;  // ids of the constraints that forbid nothing
  /// Ids of the constraints that some combination leaves undecided, because a fact is not known.
  std::vector<std::string> unknown;
};

/// Makes the model. `where` is a further constraint, after the others. Throws InputError if a rule
/// reads too many combinations.
MatrixModel matrix_model(const MatrixFile& file, const Catalogue& catalogue, const Machine& machine,
                         const std::optional<Expression>& where, Extent extent);

/// The constraint that `constraint` of the file is broken (and not merely undecided).
cover::Constraint broken(const Constraint& constraint, const MatrixFile& file,
                         const Machine& machine);

/// The states of the axes of a row, whose cells are value indices.
std::vector<std::size_t> states_of(const cover::Row& row);

}  // namespace graphproof::matrix
