// Hazards as data (hazards/hazards.json): combinations that may hang, crash or corrupt, what is
// expected of each, and what the rules of upstream dialects predict. They are run to see what this
// stack does, never refused.
#pragma once

#include <string>
#include <vector>

#include "matrix/case/case.h"
#include "matrix/case/machine.h"
#include "matrix/catalogue/limits.h"
#include "matrix/expression/expression.h"

namespace graphproof::matrix {

struct Hazard {
  std::string id, title;
  Expression when = Expression::always();
  std::string expect;  // a verdict or a dotted prefix of one
  std::string basis;   // seen, predicted
  std::string why, source;
  std::map<std::string, Value> cure;  // axes to change; empty where nothing is wrong
};

/// What a dialect's rule says of the same settings.
struct Prediction {
  std::string dialect, covers, rule;
  Expression refuses = Expression::always();
  std::string why, source;
};

class HazardTable {
 public:
  /// Throws InputError; among others when the last hazard does not hold always, because a case
  /// would then be without an expectation.
  static HazardTable parse(const Document& document, const AxisTable& axes);

  const std::vector<Hazard>& hazards() const { return hazards_; }
  const std::vector<Prediction>& predictions() const { return predictions_; }
  const Hazard* find(std::string_view id) const;
  /// What is expected of `test_case` on `machine`; null for a case that the table is not about. A
  /// condition that the machine leaves unknown does not hold.
  const Hazard* of(const Case& test_case, const Machine& machine) const;
  /// Whether it needs processes of its own, with limits() beside the defaults.
  bool disposable(const Case& test_case, const Machine& machine) const;
  const Limits& limits() const { return limits_; }
  /// The case with the hazard's cure; the same case when it has none.
  static Case cured(const AxisTable& axes, const Hazard& hazard, const Case& test_case);

 private:
  Expression cases_ = Expression::always(), disposable_ = Expression::always();
  Limits limits_;
  std::vector<Hazard> hazards_;
  std::vector<Prediction> predictions_;
};

}  // namespace graphproof::matrix
