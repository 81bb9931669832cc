// Hazards as data (matrix/tables/hazards.json): combinations that may hang, crash or corrupt
// results, what is expected of each, and what the rules of upstream dialects predict. They are
// never refused: they run, to show what this software stack does.
#pragma once

#include <string>
#include <vector>

#include "matrix/case/case.h"
#include "matrix/case/machine.h"
#include "matrix/catalogue/limits.h"
#include "matrix/expression/expression.h"

namespace graphproof::matrix {

/// A row of the table. Of several rows whose `when` holds, the first one counts.
struct Hazard {
  std::string id, title;
  Expression when = Expression::always();
  std::string expect;  // a verdict or a dotted prefix of one
  std::string basis;   // seen, predicted
  std::string why, source;
  std::map<std::string, Value>
      cure;  // axis values that avoid the failure; empty if none is expected
};

/// What a rule of an upstream dialect says about the same settings.
struct Prediction {
  std::string dialect, covers, rule;
  Expression refuses = Expression::always();
  std::string why, source;
};

/// The hazards and the predictions.
class HazardTable {
 public:
  /// Throws InputError; also if the `when` of the last hazard is not `true`, because a case could
  /// then have no expectation.
  static HazardTable parse(const Document& document, const AxisTable& axes);

  const std::vector<Hazard>& hazards() const { return hazards_; }
  const std::vector<Prediction>& predictions() const { return predictions_; }
  const Hazard* find(std::string_view id) const;
  /// The hazard of `test_case` on `machine`; null if the table is not about this case. A condition
  /// that is unknown on this machine does not hold.
  const Hazard* of(const Case& test_case, const Machine& machine) const;
  /// Whether the case needs processes of its own, under limits().
  bool disposable(const Case& test_case, const Machine& machine) const;
  /// The limits of disposable cases, for the phases that it names.
  const Limits& limits() const { return limits_; }
  /// The case with the hazard's cure applied; the same case if there is no cure.
  static Case cured(const AxisTable& axes, const Hazard& hazard, const Case& test_case);

 private:
  Expression cases_ = Expression::always(), disposable_ = Expression::always();
  Limits limits_;
  std::vector<Hazard> hazards_;
  std::vector<Prediction> predictions_;
};

}  // namespace graphproof::matrix
