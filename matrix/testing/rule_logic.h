// Rules as propositions: can a rule fire at all, and can what two rules require hold together?
// CaDiCaL answers over the values that the rules tell apart: every value of a choice, the numbers
// around each one that a rule compares with, the lists of up to two words. For tests of rule sets.
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

struct LogicPart {
  Expression when = Expression::always(), require = Expression::always();
};
/// Broken where `when` holds and some part's `when` holds and its `require` does not.
struct LogicRule {
  std::string id;
  Expression when = Expression::always();
  std::vector<LogicPart> parts;
};

class RuleLogic {
 public:
  /// `axes` has what the rules read beside machine variables. Rules come in the order in which they
  /// are evaluated. Throws InputError for a rule that reads more than can be looked through.
  RuleLogic(std::vector<LogicRule> rules, const AxisTable& axes);
  ~RuleLogic();

  /// Some values break the rule.
  bool can_fire(std::size_t rule);
  /// The rule applies to some values that do not break it.
  bool can_hold(std::size_t rule);
  /// Some values break the rule and none of `earlier`.
  bool can_fire_before(std::size_t rule, std::span<const std::size_t> earlier);
  /// Where it can't: those of `earlier` that hide it, none of which can be left out.
  std::vector<std::size_t> hiders(std::size_t rule, std::span<const std::size_t> earlier);
  /// Each can be satisfied alone, but one of them, wherever it applies, only by breaking the other:
  /// together they forbid what that rule speaks of, which neither says.
  bool contradict(std::size_t one, std::size_t other);
  /// Values of the last question that was answered with true: "impl=local, modules=[attn]", of the
  /// rules' inputs.
  std::string example(std::span<const std::size_t> rules) const;

 private:
  struct Encoded;
  std::vector<LogicRule> rules_;
  std::unique_ptr<Encoded> encoded_;
};

}  // namespace graphproof::matrix
