// Conditions and rules as functions of a row's states, stored in tables so that a row costs a
// lookup. Products and covering plans share them, because they must call the same rows valid.
#pragma once

#include <functional>
#include <set>
#include <vector>

#include "matrix/catalogue/capabilities.h"
#include "matrix/catalogue/rules.h"
#include "matrix/plan/matrix_file.h"

namespace graphproof::matrix {

/// For each varying axis the index of its value; one past the last value means absent.
using States = std::vector<std::size_t>;

/// The number of states of an axis: its values, and absent if the axis can be off.
std::size_t state_count(const VaryingAxis& axis);

/// A truth for each row, which depends on the states of the axes that it reads.
class RowTruth {
 public:
  RowTruth(const std::vector<VaryingAxis>& axes, const std::set<std::size_t>& reads,
           std::function<Truth(const States&)> evaluate);

  Truth of(const States& states) const;
  /// Whether every row has this truth. False also if the table would be too large to decide it.
  bool always(Truth truth) const;
  /// Whether some row has this truth. False also if the table would be too large to decide it.
  bool sometimes(Truth truth) const;
  const std::vector<std::size_t>& reads() const { return reads_; }

 private:
  /// An axis that is read, as a dimension of the table.
  struct Dimension {
    std::size_t axis, stride, states;
  };
  std::function<Truth(const States&)> evaluate_;
  std::vector<std::size_t> reads_;  // axes, in order
  std::vector<Dimension> dimensions_;
  std::vector<Truth> table_;
};

/// Whether a condition holds. In it, an axis that is off is absent.
RowTruth condition_truth(const Expression& expression, const std::vector<VaryingAxis>& axes,
                         const Machine& machine);
/// For each part of a rule, whether a row breaks it; a row that breaks a part breaks the rule. A
/// rule judges the case, in which an axis that is off has its default.
std::vector<RowTruth> rule_truths(const Rule& rule, const std::vector<VaryingAxis>& axes,
                                  const Machine& machine);

/// Whether a row can run as far as `capability` says. It judges the case, in which an axis that is
/// off has its default; an unknown condition does not hold.
RowTruth capability_truth(const Capability& capability, const std::vector<VaryingAxis>& axes,
                          const Machine& machine);

/// The case of a row.
Case case_of(const States& states, const std::vector<VaryingAxis>& axes, const AxisTable& table);

}  // namespace graphproof::matrix
