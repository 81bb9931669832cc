// Checks a parsed expression before anything runs. Every word must be an input, a define, or a
// value of the operand that it is compared with, and every operator must have operands of the types
// that it takes.
#pragma once

#include <memory>
#include <vector>

#include "matrix/expression/expression.h"
#include "matrix/expression/expression_node.h"

namespace graphproof::matrix {

/// A checked expression: the tree to evaluate, and the inputs that it reads.
struct Checked {
  std::shared_ptr<const ExpressionNode> root;
  std::vector<Input> inputs;
};

/// Checks `syntax`; `condition` demands that its value is true or false. Throws InputError with a
/// place from `origin`.
Checked check(const Syntax& syntax, bool condition, const Scope& scope, const Origin& origin);

/// As check(), for an expression whose value `axis` can take; a bare word is a value of the axis.
Checked check_value(const Syntax& syntax, const Axis& axis, const Scope& scope,
                    const Origin& origin);

}  // namespace graphproof::matrix
