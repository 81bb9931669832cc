// The one expression language of rules, matrix files, filters and required checks (DESIGN 6). Text
// becomes tokens (token.h), a tree (syntax.h) and a tree with names and types (checker.h), all
// before anything runs; evaluation.h then computes it. Three-valued: a variable that nobody
// supplied makes a result unknown unless the rest decides (`false and x` is false, `true or x` is
// true, as Kleene has it).
//
//   tp * pp <= slots          moe in modules          impl in {local, transformer_engine}
//   impl == full_iteration and dropout implies rng_tracker == graph_safe
//
// Binding, tightest first: * / %;  + -;  == != < <= > >= in;  not;  and;  or;  implies (to the
// right). A bare word that names no axis is a value of the axis it is compared with. Values that
// are not words are quoted: nccl_graph_register == "0". `absent` equals only an axis that is
// switched off; arithmetic with it is absent, an order with it is false, and an absent truth is
// false. / rounds towards zero. Functions: min(a, ...), max(a, ...), len(set), divides(a, b) (a
// divides b; 0 divides nothing), word(call); contains(text, "part"), has_item(text, "item")
// (exactly, of a comma-separated text), items(text) (its items without blanks, as a set),
// lower(text), integer(text) (absent when the text spells none); subset(set, {a, b}), overlaps(set,
// {a, b}), with(set, a, ...), without(set, a, ...). `x in recompute` asks for an argument of a
// call.
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

enum class Truth { no, yes, unknown };

struct Syntax;          // matrix/expression/syntax.h
struct ExpressionNode;  // matrix/expression/expression_node.h
struct Checked;         // matrix/expression/checker.h

/// The names an expression may use beside axes and machine variables.
struct Scope {
  const AxisTable* axes = nullptr;
  std::map<std::string, std::shared_ptr<const Syntax>>
      defines;  // checked, and read as if written in parentheses
};

/// Something an expression reads.
struct Input {
  std::string name;
  bool machine = false;  // a machine or stack variable, otherwise an axis
  Value default_value;   // of an axis
};

class Expression {
 public:
  /// Parses and checks a condition. Throws InputError with place, caret and nearest name.
  static Expression condition(std::string_view text, const Scope& scope, Origin origin);
  /// The same for an expression of any type; used for placeholders in messages and for cost.
  static Expression any(std::string_view text, const Scope& scope, Origin origin);
  /// An expression whose value `axis` can take: a bare word is one of its values.
  static Expression value_of(std::string_view text, const Scope& scope, Origin origin,
                             std::string_view axis);
  /// The condition that always holds.
  static Expression always();

  const std::vector<Input>& inputs() const { return inputs_; }
  /// `values` are aligned with inputs(). Throws InputError for a division by zero or an overflow.
  Value evaluate(std::span<const Value> values) const;
  Truth holds(std::span<const Value> values) const;
  Truth holds(const Case& test_case, const Machine& machine) const;
  Value evaluate(const Case& test_case, const Machine& machine) const;
  /// The expression in its one spelling; parsing it gives the same expression.
  std::string text() const;
  const std::shared_ptr<const Syntax>& syntax() const { return syntax_; }
  /// The tree that is evaluated: defines written out, words resolved.
  const std::shared_ptr<const ExpressionNode>& checked() const { return root_; }

 private:
  Expression(std::shared_ptr<const Syntax> syntax, Checked checked, Origin origin);

  std::shared_ptr<const Syntax> syntax_;
  std::shared_ptr<const ExpressionNode> root_;
  std::vector<Input> inputs_;
  Origin origin_;
};

/// Adds a define to `scope` after checking it. InputError when the name is taken.
void add_define(Scope& scope, const std::string& name, std::string_view text, Origin origin);

/// The values of `inputs` for a case on a machine.
std::vector<Value> input_values(std::span<const Input> inputs, const Case& test_case,
                                const Machine& machine);

}  // namespace graphproof::matrix
