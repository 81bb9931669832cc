// The product of the varying axes under constraints. Its rows are counted without going through
// them, and visited one by one so that memory does not grow with their number.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "matrix/cover/model/product.h"
#include "matrix/plan/matrix_model.h"
#include "matrix/plan/row_truth.h"
#include "reports/record/job/plan.h"

namespace graphproof::matrix {

/// How many rows a rule or constraint removes.
struct Removed {
  std::string rule;
  cover::RowCount rows;
};

/// The sizes of the product.
struct ExpansionCounts {
  cover::RowCount raw;  // rows before any constraint; an axis that is off has one state
  cover::RowCount valid;
  cover::RowCount filtered;      // valid rows that `where` left out
  std::vector<Removed> removed;  // each row counts for the first rule or constraint that forbids it
  std::vector<std::string> idle;     // rules and constraints that remove no row after the others
  std::vector<std::string> unknown;  // rules that are undecided for some row
};

/// A row as a case.
struct ExpandedRow {
  Case test_case;
  std::optional<record::Skip> skip = {};  // set if a constraint with "as" failed
  /// For a row of an earlier plan: how many values had to change to keep it.
  std::optional<int> changed_cells = {};
};

/// The product of one matrix file on one machine.
class Expansion {
 public:
  /// The rules of the catalogue apply first, in source order, then the file's constraints, then
  /// `where`. Throws InputError if a rule reads too many combinations. REQUIRES: the file and the
  /// catalogue outlive the expansion.
  Expansion(const MatrixFile& file, const Catalogue& catalogue, const Machine& machine,
            const std::optional<Expression>& where);
  Expansion(const Expansion&) = delete;  // the product points into the model
  Expansion& operator=(const Expansion&) = delete;

  const ExpansionCounts& counts() const { return counts_; }
  /// The number of rows that for_each() visits.
  cover::RowCount chosen() const { return product_.valid(); }

  /// Calls `row` for every valid row that `where` leaves, in odometer order: the last axis changes
  /// fastest.
  void for_each(const std::function<void(ExpandedRow&&)>& row) const;

 private:
  ExpandedRow expanded(const cover::Row& row) const;

  const MatrixFile& file_;
  const Catalogue& catalogue_;
  MatrixModel model_;
  cover::Product product_;
  /// A constraint with "as", and where it holds.
  struct Skip {
    const Constraint* constraint;
    RowTruth holds;
  };
  std::vector<Skip> skips_;  // constraints with "as"
  ExpansionCounts counts_;
};

}  // namespace graphproof::matrix
