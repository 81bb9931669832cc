// Makes the negative rows of a matrix file: rows that break a constraint that the file marks
// "negative". The software under test must refuse them.
#pragma once

#include <string>
#include <vector>

#include "matrix/case/machine.h"
#include "matrix/catalogue/catalogue.h"
#include "matrix/plan/matrix_file.h"

namespace graphproof::matrix {

/// A row that breaks a negative constraint.
struct NegativeRow {
  Case test_case;
  std::string rule;  // that must refuse it: the first one, in source order, of those that it breaks
  std::vector<std::string> breaks;  // all rules and constraints that it breaks, in source order
};

/// The negative rows, and the constraints that no row breaks alone.
struct NegativeRows {
  std::vector<NegativeRow> rows;
  std::vector<std::string> not_isolated;  // "X1: breaks only together with R035"
};

/// For every negative constraint and every combination of values, of the axes that it reads, that
/// breaks it: the first row with this combination that breaks nothing else. If no row breaks the
/// constraint alone, the rows break as few others with it as possible.
NegativeRows negative_rows(const MatrixFile& file, const Catalogue& catalogue,
                           const Machine& machine);

}  // namespace graphproof::matrix
