// The cases around one that failed, as a model that rows are drawn from: what the run varied, each
// axis also at its default, under the shipped rules, the matrix file's own constraints and what
// this machine can run.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "matrix/cover/model/model.h"
#include "matrix/plan/matrix_file.h"

namespace graphproof::shrink {

class Space {
 public:
  /// `others`: cases that the run had beside `failing`; their values are varied too. `file`: the
  /// run's matrix file, null where it is not at hand. A planted fault stays as it is. Constraints
  /// that `failing` itself breaks are left out: it ran. The catalogue outlives this.
  Space(const matrix::Case& failing, std::span<const matrix::Case> others,
        const matrix::MatrixFile* file, const matrix::Catalogue& catalogue,
        const matrix::Machine& machine);

  const cover::Model& model() const { return model_; }
  const cover::Row& failing() const { return failing_; }
  const std::vector<matrix::VaryingAxis>& axes() const { return file_.axes; }

  /// kAny for a value that the model does not have.
  cover::Row row_of(const matrix::Case& test_case) const;
  matrix::Case case_of(const cover::Row& row) const;

  /// `impl == manual and tp == 2`: the failing case's values of these axes, as matrix files spell
  /// it; `true` of none.
  std::string expression(std::span<const int> parameters) const;
  /// The failing case's values alone, everything else at its default: the name of such a case.
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
