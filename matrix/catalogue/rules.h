// Rules as data: which combinations are refused, and why. The shipped set is rules/graphproof.json:
// the upstream rules that our engines enforce, under their upstream ids, in the order in which
// upstream evaluates them, then ours.
#pragma once

#include <nlohmann/json.hpp>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "matrix/case/case.h"
#include "matrix/case/machine.h"
#include "matrix/expression/expression.h"

namespace graphproof::matrix {

/// One condition of a rule. `want` is a text with {expression} placeholders, so that a message
/// carries the numbers.
struct RulePart {
  Expression when = Expression::always();
  Expression require = Expression::always();
  std::string want;
  std::vector<std::pair<std::string, Expression>>
      placeholders;  // text as written in `want` -> its value
};

struct Rule {
  std::string id, dialect, what, why, next, source;
  std::string from, before;  // versions of the dialect: from <= v < before; empty is open
  std::string stage, status, severity;  // words of DESIGN 6
  Expression when = Expression::always();
  std::vector<RulePart> parts;
  std::vector<Case> breaks;  // cases that break this rule and no other: negative cases
};

struct Finding {
  std::string rule, stage, severity, what, got, want, why, next;
  bool unknown = false;  // the rule reads a variable that nobody supplied

  nlohmann::json json() const;
};

class RuleSet {
 public:
  static RuleSet parse(const Document& document, const AxisTable& axes);

  const std::vector<Rule>& rules() const { return rules_; }  // in source order
  const Rule* find(std::string_view id) const;
  /// Every live rule that `test_case` breaks or that can't be decided, in source order; one finding
  /// a rule.
  std::vector<Finding> evaluate(const Case& test_case, const Machine& machine) const;
  /// The first live error in source order: what a rank program refuses the case with, in phase
  /// validate.
  std::optional<Finding> refusal(const Case& test_case, const Machine& machine) const;
  /// Whether `rule` applies, holds, or can't be decided.
  std::optional<Finding> check(const Rule& rule, const Case& test_case,
                               const Machine& machine) const;

 private:
  std::vector<Rule> rules_;
};

}  // namespace graphproof::matrix
