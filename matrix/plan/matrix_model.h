// A matrix file, the shipped rules and a machine as a model for matrix/cover: a parameter for each
// varying axis, its values in order, then `absent` where it can be switched off. Everything that
// plans works on this one model, so that a whole product, a sample and a covering plan call the
// same rows valid.
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

/// Which constraints a model has. Their ids: "when AXIS", rule ids, constraint ids, "where"; of
/// what a machine lacks "slots" and the `missing` texts of the capabilities.
enum class Extent {
  anywhere,  // rules and constraints that hold whatever the machine is, without those marked
             // negative
  legal,     // all of them, but those that only skip ("as")
  runnable,  // these too, and what the machine can't run
};

struct MatrixModel {
  cover::Model model;             // constraints that forbid nothing are left out
  std::size_t switches = 0;       // constraints at the front that only switch axes off
  std::vector<std::string> idle;  // ids of those that forbid nothing
  std::vector<std::string>
      unknown;  // ids that some combination leaves undecided, for want of a fact
};

/// `where`: a further constraint, after the others. Throws InputError where a rule reads too many
/// combinations.
MatrixModel matrix_model(const MatrixFile& file, const Catalogue& catalogue, const Machine& machine,
                         const std::optional<Expression>& where, Extent extent);

/// The constraint that `constraint` of the file is broken, for certain.
cover::Constraint broken(const Constraint& constraint, const MatrixFile& file,
                         const Machine& machine);

/// Value indices of a row as states of its axes.
std::vector<std::size_t> states_of(const cover::Row& row);

}  // namespace graphproof::matrix
