// Conditions and rules as functions of a row's states, tabled so that a row costs a lookup. Shared
// by the product (expand.cpp) and the covering array (covering.cpp), which must call the same rows
// valid.
#pragma once

#include <functional>
#include <set>
#include <vector>

#include "matrix/catalogue/rules.h"
#include "matrix/plan/matrix_file.h"

namespace graphproof::matrix {

/// Of each varying axis: the index of its value; one past the last is absent.
using States = std::vector<std::size_t>;

/// Values of the axis, and absence if it can be switched off.
std::size_t state_count(const VaryingAxis& axis);

/// A truth of each row, by the states of the axes that it reads.
class RowTruth {
 public:
  RowTruth(const std::vector<VaryingAxis>& axes, const std::set<std::size_t>& reads,
           std::function<Truth(const States&)> evaluate);

  Truth of(const States& states) const;
  /// Whether no row has another truth than `truth`. False where the table would be too large to
  /// tell.
  bool always(Truth truth) const;
  /// Whether some row has this truth, as far as the table tells.
  bool sometimes(Truth truth) const;
  const std::vector<std::size_t>& reads() const { return reads_; }

 private:
  struct Dimension {
    std::size_t axis, stride, states;
  };
  std::function<Truth(const States&)> evaluate_;
  std::vector<std::size_t> reads_;  // axes, in order
  std::vector<Dimension> dimensions_;
  std::vector<Truth> table_;
};

/// Whether a condition holds; a switched-off axis is absent in it.
RowTruth condition_truth(const Expression& expression, const std::vector<VaryingAxis>& axes,
                         const Machine& machine);
/// Whether a row breaks a part of the rule, part by part: it breaks the rule where it breaks any.
/// Unknown when that can't be decided. Rules judge the case, in which a switched-off axis has its
/// default.
std::vector<RowTruth> rule_truths(const Rule& rule, const std::vector<VaryingAxis>& axes,
                                  const Machine& machine);

/// The case of a row.
Case case_of(const States& states, const std::vector<VaryingAxis>& axes, const AxisTable& table);

}  // namespace graphproof::matrix
