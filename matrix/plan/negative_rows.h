// Rows that a matrix file's own constraints forbid, for the constraints that it marks "negative":
// the stack must refuse them.
#pragma once

#include <string>
#include <vector>

#include "matrix/case/machine.h"
#include "matrix/catalogue/catalogue.h"
#include "matrix/plan/matrix_file.h"

namespace graphproof::matrix {

struct NegativeRow {
  Case test_case;
  std::string rule;  // expected to refuse it: the first in source order of those that it breaks
  std::vector<std::string> breaks;  // all that it breaks, in source order
};

struct NegativeRows {
  std::vector<NegativeRow> rows;
  std::vector<std::string> not_isolated;  // "X1: breaks only together with R035"
};

/// For every constraint marked negative and every combination of the axes that it reads which
/// breaks it: the first row that breaks nothing else. Where no row breaks it alone, rows that break
/// the fewest others with it.
NegativeRows negative_rows(const MatrixFile& file, const Catalogue& catalogue,
                           const Machine& machine);

}  // namespace graphproof::matrix
