// Rules as data: which combinations of axis values are refused, and why. The shipped set is
// matrix/rules/graphproof.json. It begins with the upstream rules that our engines enforce, under
// their upstream ids and in the order in which upstream evaluates them; our own rules follow.
#pragma once

#include <nlohmann/json.hpp>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "matrix/case/case.h"
#include "matrix/case/machine.h"
#include "matrix/catalogue/subjects.h"
#include "matrix/expression/expression.h"

namespace graphproof::matrix {

/// One condition of a rule: `require` must hold wherever `when` does. `want` is the requirement for
/// the user; its {expression} placeholders put the numbers of the case into the message.
struct RulePart {
  Expression when = Expression::always();
  Expression require = Expression::always();
  std::string want;
  /// The placeholders of `want`, each with its expression.
  std::vector<std::pair<std::string, Expression>> placeholders;
};

/// A rule: a case breaks it if the rule binds its subject, `when` and the `when` of some part hold
/// and the part's `require` does not.
struct Rule {
  std::string id, dialect, what, why, next, source;
  std::string from, before;  // the versions that have it: from <= v < before; empty is open
  std::string stage;         // cli, config, construct, run: when upstream evaluates it
  std::string status;        // live, or why upstream no longer enforces it
  std::string severity;      // error refuses a case; the others only report
  Expression when = Expression::always();
  std::vector<RulePart> parts;
  std::vector<Case> breaks;  // its negative cases: each breaks this rule and no other
  /// The subjects that run the code which enforces it; empty: all.
  std::vector<std::string> subjects;
  /// What the refusal of that code says, a part of it that does not change; empty: unknown.
  std::string says;

  bool binds(std::string_view subject) const;
};

/// The result of a rule that a case breaks, or that can't be decided, as a message.
struct Finding {
  std::string rule, stage, severity, what, got, want, why, next;
  bool unknown = false;  // undecided: the rule reads a variable that was not supplied

  nlohmann::json json() const;
};

/// The rules, in source order.
class RuleSet {
 public:
  /// Throws InputError.
  static RuleSet parse(const Document& document, const AxisTable& axes);
  /// The same, where each rule binds the subjects that run the code of its source.
  static RuleSet parse(const Document& document, const AxisTable& axes,
                       const SubjectTable& subjects);

  const std::vector<Rule>& rules() const { return rules_; }
  const Rule* find(std::string_view id) const;
  /// A finding for every live rule that `test_case` breaks or that can't be decided, in source
  /// order.
  std::vector<Finding> evaluate(const Case& test_case, const Machine& machine) const;
  /// The first live error in source order. The rank program refuses the case with it in phase
  /// validate.
  std::optional<Finding> refusal(const Case& test_case, const Machine& machine) const;
  /// The finding of one rule; nothing if the rule holds or does not apply.
  std::optional<Finding> check(const Rule& rule, const Case& test_case,
                               const Machine& machine) const;

 private:
  std::vector<Rule> rules_;
};

}  // namespace graphproof::matrix
