// The product of the varying axes under constraints, streamed: memory doesn't grow with the number of rows.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "matrix/matrix_file.h"

namespace graphproof::matrix {

struct Removed {
  std::string rule;
  std::int64_t rows = 0;
};

struct Expansion {
  std::int64_t raw = 0;             // distinct rows before any constraint; an axis switched off is one state
  std::int64_t valid = 0;
  std::int64_t filtered = 0;        // valid rows that `where` left out
  std::vector<Removed> removed;     // by the first rule or constraint in order that forbids the row
  std::vector<std::string> unknown; // rules that some row left undecided
};

/// A valid row as a case; `skip_as` and `skip_why` are set when a constraint with "as" failed.
struct ExpandedRow {
  Case test_case;
  std::string skip_as, skip_why;
};

/// Calls `row` for every valid row, in odometer order: the last axis turns fastest. Rules of the catalogue come first
/// in source order, then the file's constraints.
Expansion expand(const MatrixFile& file, const Catalogue& catalogue, const Machine& machine,
                 const std::optional<Expression>& where, const std::function<void(ExpandedRow&&)>& row);

struct NegativeRow {
  Case test_case;
  std::string rule;
};
struct NegativeRows {
  std::vector<NegativeRow> rows;
  std::vector<std::string> not_isolated;  // "X1: breaks only together with X2"
};

/// For every constraint marked negative: one row for each combination of the axes it reads that breaks it and nothing
/// else.
NegativeRows negative_rows(const MatrixFile& file, const Catalogue& catalogue, const Machine& machine);

}  // namespace graphproof::matrix
