// The cases around a failing one, as a model whose rows are cases. It has the axes and values that
// the run varied and every axis's default, under the shipped rules, the matrix file's own
// constraints and what this machine can run.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "matrix/cover/model/model.h"
#include "matrix/plan/matrix_file.h"

namespace graphproof::shrink {

/// The model of one failing case, and the way from its rows to cases and back.
class Space {
 public:
  /// `others` are the other cases of the run; their values vary too. `file` is the run's matrix
  /// file, or null if it is not available. A planted fault does not vary. Constraints that
  /// `failing` itself breaks are left out, because it ran. REQUIRES: the catalogue outlives this.
  Space(const matrix::Case& failing, std::span<const matrix::Case> others,
        const matrix::MatrixFile* file, const matrix::Catalogue& catalogue,
        const matrix::Machine& machine);

  const cover::Model& model() const { return model_; }
  const cover::Row& failing() const { return failing_; }
  const std::vector<matrix::VaryingAxis>& axes() const { return file_.axes; }

  /// The row of a case, with kAny for a value that the model does not have.
  cover::Row row_of(const matrix::Case& test_case) const;
  matrix::Case case_of(const cover::Row& row) const;

  /// The failing case's values of these axes as an expression, `impl == manual and tp == 2`; `true`
  /// if there are no axes.
  std::string expression(std::span<const int> parameters) const;
  /// The name of the case that has the failing case's values of these axes, and otherwise defaults.
  std::string name(std::span<const int> parameters) const;

 private:
  matrix::Value failing_value(int parameter) const;

  const matrix::Catalogue* catalogue_;
  matrix::Machine machine_;
  matrix::MatrixFile file_;
  matrix::Case fixed_;  // the planted fault
  matrix::Case failing_case_;
  cover::Model model_;
  cover::Row failing_;
};

}  // namespace graphproof::shrink
