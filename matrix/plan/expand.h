// The product of the varying axes under constraints: counted without walking it, streamed so that
// memory does not grow with the rows, or drawn from.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "matrix/cover/model/product.h"
#include "matrix/plan/matrix_model.h"
#include "matrix/plan/row_truth.h"
#include "reports/record/job/plan.h"

namespace graphproof::matrix {

struct Removed {
  std::string rule;
  cover::RowCount rows;
};

struct ExpansionCounts {
  cover::RowCount raw;  // distinct rows before any constraint; an axis switched off is one state
  cover::RowCount valid;
  cover::RowCount filtered;      // valid rows that `where` left out
  std::vector<Removed> removed;  // by the first rule or constraint in order that forbids the row
  std::vector<std::string>
      idle;  // rules and constraints that remove no row, or none that another had left
  std::vector<std::string> unknown;  // rules that some row left undecided
};

/// A valid row as a case.
struct ExpandedRow {
  Case test_case;
  std::optional<record::Skip> skip = {};  // set if a constraint with "as" failed
  std::optional<int> changed_cells =
      {};  // of a row of an earlier plan: what had to be changed to keep it
};

class Expansion {
 public:
  /// REQUIRES: all outlive the expansion. Rules of the catalogue come first in source order, then
  /// the file's constraints, then `where`. Throws InputError where a rule reads too many
  /// combinations.
  Expansion(const MatrixFile& file, const Catalogue& catalogue, const Machine& machine,
            const std::optional<Expression>& where);
  Expansion(const Expansion&) = delete;  // the product points into the model
  Expansion& operator=(const Expansion&) = delete;

  const ExpansionCounts& counts() const { return counts_; }
  /// How many rows for_each visits.
  cover::RowCount chosen() const { return product_.valid(); }

  /// Calls `row` for every valid row that `where` leaves, in odometer order: the last axis turns
  /// fastest.
  void for_each(const std::function<void(ExpandedRow&&)>& row) const;
  /// So many different ones of these rows, each set as likely as another; all where there are no
  /// more.
  std::vector<ExpandedRow> sample(std::size_t size, std::uint64_t seed) const;

 private:
  ExpandedRow expanded(const cover::Row& row) const;

  const MatrixFile& file_;
  const Catalogue& catalogue_;
  MatrixModel model_;
  cover::Product product_;
  struct Skip {
    const Constraint* constraint;
    RowTruth holds;
  };
  std::vector<Skip> skips_;  // constraints with "as"
  ExpansionCounts counts_;
};

}  // namespace graphproof::matrix
