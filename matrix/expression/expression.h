// The expression language of rules, matrix files, filters and required checks. A text becomes
// tokens (token.h), then a tree (syntax.h), then a tree with names and types (checker.h), all
// before anything runs; evaluation.h computes the value.
//
// The logic is Kleene's, with three values: a variable that was not supplied makes a result
// unknown, unless the rest of the expression decides it (`false and x` is false, `true or x` is
// true).
//
//   tp * pp <= slots          moe in modules          impl in {local, transformer_engine}
//   impl == full_iteration and dropout implies rng_tracker == graph_safe
//
// Binding, tightest first: * / %;  + -;  == != < <= > >= in;  not;  and;  or;  implies (associates
// to the right). A bare word that names no axis is a value of the axis that it is compared with.
// Values that are not words are quoted: nccl_graph_register == "0". `x in recompute` asks whether x
// is an argument of a call.
//
// `absent` is the value of an axis that is switched off. It equals only itself; arithmetic with it
// gives absent; <, <=, > and >= with it are false; and a condition that is absent counts as false.
// / rounds towards zero.
//
// Functions of numbers, sets and calls: min(a, ...), max(a, ...), len(set), divides(a, b) (a
// divides b; 0 divides nothing), word(call), subset(set, {a, b}), overlaps(set, {a, b}), with(set,
// a, ...), without(set, a, ...). Functions of texts: contains(text, "part"), has_item(text, "item")
// (whether a comma-separated text has exactly this item), items(text) (its items without blanks, as
// a set), lower(text), integer(text) (absent if the text is no integer).
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "matrix/case/axes.h"
#include "matrix/case/case.h"
#include "matrix/case/machine.h"

namespace graphproof::matrix {

/// Whether a condition holds.
enum class Truth { no, yes, unknown };

struct Syntax;          // matrix/expression/syntax.h
struct ExpressionNode;  // matrix/expression/expression_node.h
struct Checked;         // matrix/expression/checker.h

/// The names that an expression may use: axes, machine variables, and the defines of a matrix file.
struct Scope {
  const AxisTable* axes = nullptr;
  /// Each is checked already, and read as if it were written in parentheses.
  std::map<std::string, std::shared_ptr<const Syntax>> defines;
};

/// A variable that an expression reads.
struct Input {
  std::string name;
  bool machine = false;  // whether it is a machine or stack variable; otherwise it is an axis
  Value default_value;   // of an axis
};

/// A checked expression, ready to be evaluated many times. Copies share its trees, and evaluation
/// changes nothing, so threads may share it.
class Expression {
 public:
  /// Parses and checks a condition. Throws InputError with place, caret and nearest name.
  static Expression condition(std::string_view text, const Scope& scope, Origin origin);
  /// As condition(), for a value of any type: placeholders in messages, and costs.
  static Expression any(std::string_view text, const Scope& scope, Origin origin);
  /// An expression whose value must be one that `axis` can take; a bare word is a value of the
  /// axis.
  static Expression value_of(std::string_view text, const Scope& scope, Origin origin,
                             std::string_view axis);
  /// The condition that always holds.
  static Expression always();

  const std::vector<Input>& inputs() const { return inputs_; }
  /// The value for one row of inputs; values[i] belongs to inputs()[i]. Throws InputError for a
  /// division by zero or an overflow.
  Value evaluate(std::span<const Value> values) const;
  Truth holds(std::span<const Value> values) const;
  Truth holds(const Case& test_case, const Machine& machine) const;
  Value evaluate(const Case& test_case, const Machine& machine) const;
  /// The expression in its canonical spelling; parsing that gives the same expression.
  std::string text() const;
  const std::shared_ptr<const Syntax>& syntax() const { return syntax_; }
  /// The tree that is evaluated, in which defines are expanded and words are resolved.
  const std::shared_ptr<const ExpressionNode>& checked() const { return root_; }

 private:
  Expression(std::shared_ptr<const Syntax> syntax, Checked checked, Origin origin);

  std::shared_ptr<const Syntax> syntax_;
  std::shared_ptr<const ExpressionNode> root_;
  std::vector<Input> inputs_;
  Origin origin_;
};

/// Checks a define and adds it to `scope`. Throws InputError also if the name is taken.
void add_define(Scope& scope, const std::string& name, std::string_view text, Origin origin);

/// The values of `inputs` for a case on a machine.
std::vector<Value> input_values(std::span<const Input> inputs, const Case& test_case,
                                const Machine& machine);

}  // namespace graphproof::matrix
