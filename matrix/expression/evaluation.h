// The value of a checked expression for one row of inputs.
#pragma once

#include <span>

#include "matrix/expression/expression.h"
#include "matrix/expression/expression_node.h"

namespace graphproof::matrix {

/// Unknown stays unknown; an absent truth is false.
Truth truth_of(const Value& value);

/// `values` are aligned with the inputs that the checker found. Throws InputError, with a place
/// from `origin`, for a division by zero or an overflow.
Value evaluate(const ExpressionNode& node, std::span<const Value> values, const Origin& origin);

}  // namespace graphproof::matrix
