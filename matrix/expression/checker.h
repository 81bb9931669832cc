// Gives a parsed expression names and types, before anything runs: every word is an input, a define
// or a value of what it is compared with, and every operator has operands of the types that it
// takes.
#pragma once

#include <memory>
#include <vector>

#include "matrix/expression/expression.h"
#include "matrix/expression/expression_node.h"

namespace graphproof::matrix {

struct Checked {
  std::shared_ptr<const ExpressionNode> root;
  std::vector<Input> inputs;
};

/// `condition`: its value is true or false. Throws InputError with a place from `origin`.
Checked check(const Syntax& syntax, bool condition, const Scope& scope, const Origin& origin);

/// The same for a value that `axis` can take: a bare word is one of its values.
Checked check_value(const Syntax& syntax, const Axis& axis, const Scope& scope,
                    const Origin& origin);

}  // namespace graphproof::matrix
