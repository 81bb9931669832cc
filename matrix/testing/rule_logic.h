// For tests of rule sets: rules as propositions. Can a rule be broken at all, and can the
// requirements of two rules hold together? The SAT solver CaDiCaL answers, over the values that the
// rules distinguish: every value of a choice, the numbers around each number that a rule compares
// with, and lists of up to two words.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "matrix/expression/expression.h"

namespace graphproof::matrix {

/// A part of a rule.
struct LogicPart {
  Expression when = Expression::always(), require = Expression::always();
};
/// A rule: values break it if its `when` and the `when` of some part hold and that part's `require`
/// does not.
struct LogicRule {
  std::string id;
  Expression when = Expression::always();
  std::vector<LogicPart> parts;
};

/// Answers questions about a list of rules, which are in the order in which they are evaluated.
class RuleLogic {
 public:
  /// `axes` has what the rules read besides machine variables. Throws InputError for a rule that
  /// reads too many combinations of values.
  RuleLogic(std::vector<LogicRule> rules, const AxisTable& axes);
  ~RuleLogic();

  /// Whether some values break the rule.
  bool can_fire(std::size_t rule);
  /// Whether the rule applies to some values that do not break it.
  bool can_hold(std::size_t rule);
  /// Whether some values break the rule and no rule of `earlier`.
  bool can_fire_before(std::size_t rule, std::span<const std::size_t> earlier);
  /// If can_fire_before() is false: a minimal set of rules of `earlier` that hide the rule.
  std::vector<std::size_t> hiders(std::size_t rule, std::span<const std::size_t> earlier);
  /// Whether each rule can be fulfilled on its own, but one of them, wherever it applies, only by
  /// breaking the other. Then both together forbid everything that this one applies to, which
  /// neither intends.
  bool contradict(std::size_t one, std::size_t other);
  /// The values of the rules' inputs that answered the last question with true: "impl=local,
  /// modules=[attn]".
  std::string example(std::span<const std::size_t> rules) const;

 private:
  struct Encoded;
  std::vector<LogicRule> rules_;
  std::unique_ptr<Encoded> encoded_;
};

}  // namespace graphproof::matrix
