// Computes a checked expression for one row of inputs.
#pragma once

#include <span>

#include "matrix/expression/expression.h"
#include "matrix/expression/expression_node.h"

namespace graphproof::matrix {

/// A value as a truth: Unknown is unknown, and Absent is no.
Truth truth_of(const Value& value);

/// `values[i]` is the value of the i-th input that the checker found. Throws InputError, with a
/// place from `origin`, for a division by zero or an overflow.
Value evaluate(const ExpressionNode& node, std::span<const Value> values, const Origin& origin);

}  // namespace graphproof::matrix
